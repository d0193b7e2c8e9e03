"""What the API takes and gives: fields with their limits, operations, answers, and the OpenAPI document made from them."""

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from polite.version import __version__

# Small, since each permit has two: the headers of the status page, which browsers show, are not needed here.
JSON_HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
# `json.dumps` with these makes an encoder at each call.
encode = json.JSONEncoder(separators=(",", ":")).encode
_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}")
_FIELD_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
# Of all headers that one request tells.
_MOST_HEADER_CHARACTERS = 32_768


class ApiError(Exception):
    """An answer other than success.

    Attributes:
        status: The status.
        headers: Header fields of it.
        details: Fields of its JSON object besides `error`.
    """

    def __init__(
        self, status: int, error: str, *, headers: Mapping[str, str] | None = None, **details: object
    ) -> None:
        super().__init__(error)
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.details = details

    def response(self) -> web.Response:
        """Return the answer."""
        return json_response({"error": str(self), **self.details}, self.status, self.headers)


def unavailable(error: str, retry_after_s: float, status: int = 503, **details: object) -> ApiError:
    """Return a refusal that passes: with Retry-After."""
    wait_s = max(1, math.ceil(min(retry_after_s, 86_400.0)))
    return ApiError(status, error, headers={"Retry-After": str(wait_s)}, **details)


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a response with a JSON value."""
    shown = JSON_HEADERS if not headers else {**JSON_HEADERS, **headers}
    return web.Response(status=status, body=encode(value).encode(), headers=shown)


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
    least: float = 0
    most: float = 0
    default: Any = None
    required: bool = False

    def read(self, value: object) -> Any:  # noqa: ANN401 - what JSON has
        """Return a valid value. Raises ApiError, which names the field and its limits."""
        match self.kind:
            case "boolean" if isinstance(value, bool):
                return value
            case "integer" if type(value) is int and self.least <= value <= self.most:
                return value
            case "number" if type(value) in (int, float) and self.least <= value <= self.most:  # type: ignore[operator]
                return value
            case "string" if isinstance(value, str) and self.least <= len(value) <= self.most:
                return value
            case "object" if isinstance(value, dict) and len(value) <= self.most:
                return self._headers(value)
        raise ApiError(400, f"{self.name} must be {self._needed()}")

    def parse(self, text: str) -> Any:  # noqa: ANN401 - what JSON has
        """Return a valid value of a query. Raises ApiError."""
        if self.kind in ("integer", "number"):
            try:
                return self.read(int(text) if self.kind == "integer" else float(text))
            except ValueError:
                raise ApiError(400, f"{self.name} must be {self._needed()}") from None
        return self.read(text)

    def _headers(self, value: dict[str, object]) -> list[tuple[str, str]]:
        pairs = [
            (name, each)
            for name, values in value.items()
            for each in (values if isinstance(values, list) else [values])
        ]
        if all(isinstance(each, str) and _FIELD_NAME.fullmatch(name) for name, each in pairs):
            texts: list[tuple[str, str]] = pairs  # type: ignore[assignment]
            length = sum(len(name) + len(each) for name, each in texts)
            if length <= _MOST_HEADER_CHARACTERS and all(_FIELD_VALUE.fullmatch(each) for _, each in texts):
                return texts
        raise ApiError(400, f"{self.name} must be {self._needed()}")

    def _needed(self) -> str:
        match self.kind:
            case "boolean":
                return "true or false"
            case "string":
                return f"a string of {self.least:g} to {self.most:.0f} characters"
            case "object":
                return (
                    f"an object of at most {self.most:.0f} header fields, whose values are strings or lists of strings without "
                    f"control characters, of at most {_MOST_HEADER_CHARACTERS} characters together"
                )
            case kind:
                return f"{'an integer' if kind == 'integer' else 'a number'} from {self.least:g} to {self.most:g}"

    def schema(self) -> dict[str, Any]:
        """Return it as JSON Schema."""
        schema: dict[str, Any] = {"type": self.kind, "description": self.text}
        match self.kind:
            case "string":
                schema |= {"minLength": self.least, "maxLength": self.most}
            case "object":
                text = {"type": "string"}
                values = {"oneOf": [text, {"type": "array", "items": text}]}
                schema |= {"maxProperties": self.most, "additionalProperties": values}
            case "integer" | "number":
                schema |= {"minimum": self.least, "maximum": self.most}
        return schema if self.default is None else {**schema, "default": self.default}


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


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API: what is routed, checked and described.

    Attributes:
        method: Its method.
        path: Its path; it may end in `{id}`.
        run: Answers. The first line of its docstring is the summary.
        responses: What each status means, and which schema or content type it has, after `: `.
        query: Its query.
        body: Its JSON object; None if it takes none.
    """

    method: str
    path: str
    run: Callable[[Any, Call], Awaitable[web.StreamResponse]]
    responses: Mapping[int, str]
    query: Sequence[Field] = ()
    body: Sequence[Field] | None = None

    def read_query(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the values of a query. Raises ApiError."""
        return _read(self.query, {name: given[name] for name in given}, Field.parse)

    def read_body(self, octets: bytes) -> dict[str, Any]:
        """Return the values of a body. Raises ApiError."""
        try:
            value = json.loads(octets or b"{}")
        except (ValueError, RecursionError) as error:
            raise ApiError(400, f"the body must be a JSON object: {str(error)[:200]}") from None
        if not isinstance(value, dict):
            raise ApiError(400, "the body must be a JSON object")
        return _read(self.body or (), value, Field.read)


def _read(
    fields: Sequence[Field], given: dict[str, Any], read: Callable[[Field, Any], object]
) -> dict[str, Any]:
    values = {}
    for field in fields:
        if field.name in given:
            values[field.name] = read(field, given.pop(field.name))
        elif field.required:
            raise ApiError(400, f"{field.name} is missing: {field.text}")
        else:
            values[field.name] = field.default
    if given:
        known = ", ".join(field.name for field in fields) or "none"
        raise ApiError(400, f"{next(iter(given))[:100]!r} is not known here; known: {known}")
    return values


_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
_MAYBE = {"type": ["string", "null"]}
_HEADERS = {"type": "object", "additionalProperties": _TEXT}


def _object(text: str, required: str, /, **properties: object) -> dict[str, Any]:
    return {"type": "object", "description": text, "required": required.split(), "properties": properties}


_SCHEMAS = {
    "Permit": _object(
        "The right to send one request now.",
        "id url deadline headers",
        id={**_TEXT, "description": "Names the permit. Only the client that asked for it may end it."},
        url={**_TEXT, "description": "The URL exactly as it must be sent."},
        deadline={
            **_NUMBER,
            "description": "Unix time by which it must be reported; then its turn is taken back.",
        },
        headers={**_HEADERS, "description": "What to send: User-Agent, your own fields, and signatures."},
    ),
    "Waiting": _object(
        "The turn has not come. Ask again at `poll`.", "id url poll", id=_TEXT, url=_TEXT, poll=_TEXT
    ),
    "Decision": _object(
        "What robots.txt says about a URL.",
        "url allowed reason cause rule line text",
        url=_TEXT,
        allowed=_FLAG,
        reason={**_TEXT, "description": "A name of polite.Reason."},
        cause={**_MAYBE, "description": "Why robots.txt could not be had, if that decided."},
        rule={**_MAYBE, "description": "The rule that decided."},
        line={"type": ["integer", "null"], "description": "Its line in robots.txt."},
        text=_TEXT,
    ),
    "Error": _object(
        "Why a request was not granted.",
        "error",
        error=_TEXT,
        decision={"$ref": "#/components/schemas/Decision"},
    ),
    "Ended": _object(
        "The report was taken.",
        "ended valid",
        ended={**_FLAG, "description": "Whether the permit has ended."},
        valid={**_FLAG, "description": "Whether its turn still held."},
    ),
    "Any": {"type": "object"},
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these operations."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _described(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "polite serve",
            "version": __version__.rpartition(".")[0],
            "summary": "One gate for every crawler of a machine: may I fetch this URL, and now?",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "http://127.0.0.1:8700"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: Operation) -> dict[str, Any]:
    text = (operation.run.__doc__ or "").strip()
    summary, _, rest = text.partition("\n\n")
    described: dict[str, Any] = {
        "operationId": operation.run.__name__,
        "summary": summary,
        "responses": {str(status): _response(said) for status, said in operation.responses.items()},
    }
    if rest:
        described["description"] = " ".join(rest.split())
    parameters = [
        {"name": each.name, "in": "query", "required": each.required, "schema": each.schema()}
        for each in operation.query
    ]
    if operation.path.endswith("{id}"):
        parameters.insert(0, {"name": "id", "in": "path", "required": True, "schema": _TEXT})
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        schema = _object(
            "", " ".join(field.name for field in operation.body if field.required),
            **{field.name: field.schema() for field in operation.body},
        )  # fmt: skip
        schema |= {"additionalProperties": False}
        del schema["description"]
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _response(said: str) -> dict[str, Any]:
    text, _, form = said.partition(": ")
    if not form:
        return {"description": text}
    if "/" in form:
        return {"description": text, "content": {form: {}}}
    schema = {"$ref": f"#/components/schemas/{form}"}
    return {"description": text, "content": {"application/json": {"schema": schema}}}
