"""A request that the browser paused before it is sent, or when the head of its response came."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# What a browser accepts as the icon of a page, which nothing else says of that request.
_ACCEPTS_AN_ICON = "image/"
# Why a request failed that says nothing of the server: the page was left, or a handler of the crawler's aborted it.
_OWN_FAILURES = frozenset({"Aborted", "BlockedByClient"})


@dataclass(frozen=True)
class PausedRequest:
    """An event Fetch.requestPaused of the Chrome DevTools Protocol.

    Attributes:
        key: The interception: another one for each redirect hop.
        frame: The frame, or the worker, that makes the request.
        url: What it requests.
        kind: The resource type, such as Document.
        status: That of the response, None before it came.
        failure: Why no response came, None otherwise.
        has_head: It is paused since the head of its response came, or none will come.
        fields: The header of the request.
        response_fields: The header of the response.
    """

    key: str
    frame: str
    url: str
    kind: str
    status: int | None
    failure: str | None
    fields: Mapping[str, str]
    response_fields: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "PausedRequest":
        request = event["request"]
        return cls(
            event["requestId"],
            event["frameId"],
            request["url"],
            event["resourceType"],
            event.get("responseStatusCode"),
            event.get("responseErrorReason"),
            request["headers"],
            tuple((field["name"], field["value"]) for field in event.get("responseHeaders", ())),
        )

    @property
    def has_head(self) -> bool:
        return self.status is not None or self.failure is not None

    @property
    def is_fetched(self) -> bool:
        """Whether a server answers it. What is not of http, such as data:, never leaves the browser."""
        return is_fetched(self.url)

    @property
    def is_document(self) -> bool:
        """Whether it is a page or a frame."""
        return self.kind == "Document"

    @property
    def is_icon(self) -> bool:
        return self.kind == "Other" and (self.field("accept") or "").startswith(_ACCEPTS_AN_ICON)

    @property
    def agent(self) -> str | None:
        """Its User-Agent. The main scripts of workers get theirs later."""
        return self.field("user-agent")

    @property
    def error(self) -> ConnectionError | None:
        """The failure for `Permit.leave`, None if it is the crawler's own."""
        if self.failure is None or self.failure in _OWN_FAILURES:
            return None
        return ConnectionError(f"{self.url}: {self.failure}")

    def field(self, name: str) -> str | None:
        return next((value for field, value in self.fields.items() if field.lower() == name), None)

    def fields_with_agent(self, agent: str) -> list[dict[str, str]]:
        """Return its header with another User-Agent."""
        return [{"name": name, "value": value} for name, value in self._fields_of(agent)]

    def _fields_of(self, agent: str) -> Iterator[tuple[str, str]]:
        yield from ((name, value) for name, value in self.fields.items() if name.lower() != "user-agent")
        yield "User-Agent", agent


def is_fetched(url: str) -> bool:
    return url.partition(":")[0].lower() in {"http", "https"}
