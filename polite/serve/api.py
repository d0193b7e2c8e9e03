"""What the API takes and gives: fields with their limits, operations, answers, and the OpenAPI document made from them."""

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from polite.version import __version__

# Few, since each permit has two answers. The headers of the status page are for browsers.
JSON_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}  # fmt: skip
# `json.dumps` with these makes an encoder at each call.
encode: Callable[[object], str] = json.JSONEncoder(separators=(",", ":"), default=str).encode


class ApiError(Exception):
    """An answer other than success.

    Attributes:
        status: The status.
        headers: Header fields of it.
        details: Fields of its JSON object besides `error`.
    """

    def __init__(
        self, status: int, error: str, *, retry_after_s: float | None = None, **details: object
    ) -> None:
        super().__init__(error)
        self.status = status
        self.headers: dict[str, str] = {}
        self.details = details
        if retry_after_s is not None:
            self.headers["Retry-After"] = str(max(1, math.ceil(min(retry_after_s, 86_400.0))))
        if status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"

    def response(self) -> web.Response:
        """Return the answer."""
        return json_response({"error": str(self), **self.details}, self.status, **self.headers)


def json_response(value: object, status: int = 200, **headers: str) -> web.Response:
    """Return a response with a JSON value."""
    return web.Response(status=status, body=encode(value).encode(), headers={**JSON_HEADERS, **headers})


# Of each kind of field: what it must be, and what JSON Schema calls its limits.
_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "boolean": ("true or false", ()),
    "integer": ("an integer from {} to {}", ("minimum", "maximum")),
    "number": ("a number from {} to {}", ("minimum", "maximum")),
    "string": ("a string of {} to {} characters", ("minLength", "maxLength")),
    "object": (
        "an object of {} to {} header fields: strings or lists of strings without control characters, of at most 32768 in all",
        ("minProperties", "maxProperties"),
    ),
}
_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_FIELD_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_MOST_HEADER_CHARACTERS = 32_768


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a request's JSON object, or of its query.

    Attributes:
        name: Its name.
        kind: Its type in JSON Schema. An "object" holds header fields, each a string or a list of strings.
        text: What it is.
        least: The least number, or the least number of characters or entries.
        most: The most.
        default: What is taken if it is not there.
        required: Whether it must be there.
    """

    name: str
    kind: str
    text: str
    least: int = 0
    most: int = 0
    default: Any = None
    required: bool = False

    def read(self, value: Any) -> Any:  # noqa: ANN401 - what JSON has
        """Return a valid value. Raises ApiError, which names the field and its limits."""
        match value, self.kind:
            case bool(), kind:
                valid = kind == "boolean"
            case int() | float(), "number" | "integer":
                valid = self.least <= value <= self.most and (self.kind == "number" or isinstance(value, int))
            case (str(), "string") | (dict(), "object"):
                valid = self.least <= len(value) <= self.most and (isinstance(value, str) or _headers(value))
            case _:
                valid = False
        if not valid:
            raise ApiError(400, f"{self.name} must be {_KINDS[self.kind][0].format(self.least, self.most)}")
        return value

    def parse(self, text: str) -> Any:  # noqa: ANN401 - what JSON has
        """Return a valid value of a query. Raises ApiError."""
        if self.kind == "string" or not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", text):
            return self.read(text)
        return self.read(float(text) if "." in text else int(text))

    def schema(self) -> dict[str, Any]:
        """Return it as JSON Schema."""
        limits = zip(_KINDS[self.kind][1], (self.least, self.most), strict=False)
        default = {} if self.default is None else {"default": self.default}
        return {"type": self.kind, "description": self.text, **dict(limits), **default}


def _headers(value: dict[str, Any]) -> bool:
    lists = [(name, given if isinstance(given, list) else [given]) for name, given in value.items()]
    pairs = [(name, each) for name, values in lists for each in values]
    return (
        all(isinstance(each, str) for _, each in pairs)
        and sum(len(name) + len(each) for name, each in pairs) <= _MOST_HEADER_CHARACTERS
        and all(_FIELD_NAME.fullmatch(name) and _FIELD_VALUE.fullmatch(each) for name, each in pairs)
    )


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as an operation gets it.

    Attributes:
        request: The request.
        client: The name of its token; "" without tokens.
        id: The last segment of the path, for an operation whose path ends in `{id}`.
        values: The valid values of its query or its JSON object, with defaults.
    """

    request: web.BaseRequest
    client: str
    id: str
    values: Mapping[str, Any]

    def cut(self) -> None:
        """End the connection at once: what was sent is not the whole answer."""
        if self.request.transport is not None:
            self.request.transport.abort()


Run = Callable[[Any, Call], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API: what is routed, checked and described.

    Attributes:
        method: Its method. That of a POST takes a JSON object, others a query.
        path: Its path; it may end in `{id}`.
        fields: What it takes.
        responses: What each status means, and which schema or content type it has, after `: `.
        run: Answers. The first paragraph of its docstring is the summary.
    """

    method: str
    path: str
    fields: Sequence[Field]
    responses: Mapping[int, str]
    run: Run

    def read(self, given: Mapping[str, Any], read: Callable[[Field, Any], object]) -> dict[str, Any]:
        """Return the values of all fields, with defaults. Raises ApiError."""
        known = {field.name: field for field in self.fields}
        if unknown := [name for name in given if name not in known]:
            raise ApiError(
                400, f"{unknown[0][:100]!r} is not known here; known: {', '.join(known) or 'none'}"
            )
        if missing := [each for each in self.fields if each.required and each.name not in given]:
            raise ApiError(400, f"{missing[0].name} is missing: {missing[0].text}")
        defaults = {name: each.default for name, each in known.items()}
        return defaults | {name: read(known[name], given[name]) for name in given}

    def read_body(self, octets: bytes) -> dict[str, Any]:
        """Return the values of a JSON object. Raises ApiError."""
        try:
            value = json.loads(octets or b"{}")
        except (ValueError, RecursionError) as error:
            raise ApiError(400, f"the body must be a JSON object: {str(error)[:200]}") from None
        if not isinstance(value, dict):
            raise ApiError(400, "the body must be a JSON object")
        return self.read(value, Field.read)

    def described(self) -> dict[str, Any]:
        """Return it as OpenAPI has it."""
        summary, *rest = (self.run.__doc__ or "").strip().split("\n\n")
        schemas = {each.name: each.schema() for each in self.fields}
        required = [each.name for each in self.fields if each.required]
        parameters = [("id", "path", {"type": "string"})] if self.path.endswith("{id}") else []
        described: dict[str, Any] = {
            "operationId": self.run.__name__,
            "summary": summary,
            "description": " ".join(" ".join(rest).split()),
            "responses": {str(status): _response(said) for status, said in self.responses.items()},
        }
        if self.method == "POST":
            schema = {"type": "object", "required": required, "properties": schemas, "additionalProperties": False}  # fmt: skip
            described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        else:
            parameters += [(name, "query", schema) for name, schema in schemas.items()]
        described["parameters"] = [
            {"name": name, "in": place, "required": place == "path" or name in required, "schema": schema}
            for name, place, schema in parameters
        ]
        return described


def operation(
    method: str, path: str, *fields: Field, responses: Mapping[int, str]
) -> Callable[[Run], Operation]:
    """Make an operation of a function."""
    return lambda run: Operation(method, path, fields, responses, run)


def _response(said: str) -> dict[str, Any]:
    text, _, form = said.partition(": ")
    if not form:
        return {"description": text}
    media = {"schema": {"$ref": f"#/components/schemas/{form}"}}
    content = {form: {}} if "/" in form else {"application/json": media}
    return {"description": text, "content": content}


# What each is, and its fields with their types.
_SCHEMAS = {
    "Permit": (
        "The right to send one request now: to `url` exactly, with `headers`. Report it by `deadline` (Unix time).",
        "id=string url=string deadline=number headers=object",
    ),
    "Waiting": ("The turn has not come: ask again at `poll`.", "id=string url=string poll=string"),
    "Decision": (
        "What robots.txt says about a URL, by which rule. `reason` and `cause` are names of polite.Reason.",
        "url=string allowed=boolean reason=string cause=string|null rule=string|null line=integer|null text=string",
    ),
    "Error": ("Why not. After a decision it has `decision`, too.", "error=string"),
    "Ended": ("Whether the permit has ended, and whether its turn still held.", "ended=boolean valid=boolean"),
    "Any": ("What is known.", ""),
}  # fmt: skip


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these operations."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = each.described()
    schemas = {}
    for name, (text, fields) in _SCHEMAS.items():
        types = dict(field.split("=") for field in fields.split())
        properties = {field: {"type": kind.split("|")} for field, kind in types.items()}
        schemas[name] = {"type": "object", "description": text, "required": [*types], "properties": properties}  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {"title": "polite serve", "version": __version__.rpartition(".")[0]},
        "servers": [{"url": "http://127.0.0.1:8700"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
