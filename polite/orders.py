"""An operator's orders: which origins and URLs must wait, or get no request, whatever rules and pace say."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from polite.errors import InvalidOption, InvalidURL, redact_url
from polite.origin import Origin, Target
from polite.robots.pattern import UNRESERVED, normaliser
from polite.url.host import is_address

Kind = Literal["hold", "forbid", "drop"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Orders that may stand at one time, and characters of a text.
MOST_ORDERS, _LONGEST = 10_000, 1_000
_normal = normaliser(UNRESERVED)
_FORMS = "an origin (https://example.com), a domain with all hosts below it (*.example.com), or the beginning of URLs"


def pattern_of(text: object) -> str:
    """Return the canonical pattern: an origin, a domain with all hosts below it, or the beginning of URLs.

    >>> pattern_of("*.Example.com"), pattern_of("https://EXAMPLE.com:443/"), pattern_of("https://example.com/a b")
    ('*.example.com', 'https://example.com', 'https://example.com/a%20b')

    Raises:
        InvalidOption: It is none of these.
    """
    if not isinstance(text, str):
        raise InvalidOption(f"pattern must be {_FORMS}, got {text!r}")
    try:
        if text.startswith("*."):
            target = Target.of(f"https://{text[2:]}/")
            host = target.origin.host
            if target.url == f"https://{host}/" and not (host.endswith(".") or is_address(host)):
                return f"*.{host}"
        elif "://" in text and "*" not in text:
            target = Target.of(text)
            return target.origin.text + ("" if target.path == "/" else _normal(target.path))
    except InvalidURL as error:
        raise InvalidOption(f"pattern={redact_url(text)!r} must be {_FORMS}: {error.reason}") from None
    raise InvalidOption(f"pattern={redact_url(text)!r} must be {_FORMS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What an operator has ordered.

    Attributes:
        kind: "hold": requests wait. "forbid": none is sent. "drop": tasks of frontiers end.
        pattern: An origin, `*.domain` (the domain and all hosts below it), or the beginning of URLs.
        because: Why, in the operator's words.
        by: Who: user and host, or the name of a token.
        at: When it was given (Unix time).
        until: When it ends by itself (Unix time); None for never.
    """

    kind: Kind
    pattern: str
    because: str
    by: str
    at: float
    until: float | None = None

    def __post_init__(self) -> None:
        for name in ("because", "by"):
            text = getattr(self, name)
            is_line = isinstance(text, str) and text.isprintable() and text.strip()
            if not is_line or len(text) > _LONGEST:
                must = f"must be one line of 1 to {_LONGEST} characters"
                raise InvalidOption(f"{name} {must}, got {str(text)[:80]!r}")

    def __str__(self) -> str:
        said = {"hold": "held", "forbid": "forbidden", "drop": "dropped"}[self.kind]
        return f"{said} by {self.by}: {self.because}"

    def covers(self, origin: Origin, path: str | None = None) -> bool:
        """Whether it is about this URL; without a path, whether it is about all of the origin's."""
        pattern = self.pattern
        if pattern.startswith("*."):
            return f".{origin.host.rstrip('.')}".endswith(pattern[1:])
        # Escapes are compared as in robots.txt: %73ecret is secret.
        return pattern == origin.text or (
            path is not None
            and pattern.startswith(origin.text)
            and f"{origin.text}{_normal(path)}".startswith(pattern)
        )

    def touches(self, origin: Origin) -> bool:
        """Whether it is about any URL of the origin."""
        return self.covers(origin) or self.pattern.startswith(f"{origin.text}/")


def about(orders: Iterable[Order]) -> Callable[[Origin], bool]:
    """Return what tells of an origin whether orders, which may be many, are about any URL of it."""
    patterns = {each.pattern for each in orders}
    origins = {Origin.of(each).text for each in patterns if not each.startswith("*.")}
    return lambda origin: origin.text in origins or any(each in patterns for each in _above(origin))


def _above(origin: Origin) -> Iterator[str]:
    """Yield the patterns of domains that are about an origin."""
    host = origin.host.rstrip(".")
    while host:
        yield f"*.{host}"
        host = host.partition(".")[2]


class Orders:
    """The orders that stand, for a quick look at each request.

    Attributes:
        rows: The orders by kind and pattern. Change them by `replace` only.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[Kind, str], Order] = {}
        self._begun: dict[str, list[Order]] = {}  # by their origin, those about the beginning of URLs

    def replace(self, orders: Iterator[Order] | list[Order]) -> list[Order]:
        """Have these orders stand instead. Return those that differ from before, old and new."""
        before, self.rows = self.rows, {(each.kind, each.pattern): each for each in orders}
        self._begun = {}
        for order in self.rows.values():
            origin = None if order.pattern.startswith("*.") else Origin.of(order.pattern)
            if origin is not None and origin.text != order.pattern:
                self._begun.setdefault(origin.text, []).append(order)
        return list({*before.values()} ^ {*self.rows.values()})

    def of(self, kind: Kind, origin: Origin, path: str | None = None) -> Iterator[Order]:
        """Yield the orders about this URL; without a path, those about all of the origin's."""
        if not self.rows:
            return
        if (found := self.rows.get((kind, origin.text))) is not None:
            yield found
        for pattern in _above(origin):
            if (found := self.rows.get((kind, pattern))) is not None:
                yield found
        if path is not None:
            for each in self._begun.get(origin.text, ()):
                if each.kind == kind and each.covers(origin, path):
                    yield each

    def forbids(self, origin: Origin, path: str | None = None) -> Order | None:
        """Return the order that forbids this URL, if one does; without a path, all of the origin's."""
        return next(self.of("forbid", origin, path), None)

    def holds(self, origin: Origin, path: str | None = None) -> Order | None:
        """Return the order that holds this URL for longest, if one does; without a path, all of the origin's."""
        return max(self.of("hold", origin, path), key=_end, default=None)

    def held_s(self, origin: Origin, path: str | None, wall: float) -> float:
        """Return for how long the URL is held yet (seconds): infinity until a release, 0 if it is not."""
        order = self.holds(origin, path)
        return 0.0 if order is None else max(0.0, _end(order) - wall)

    @property
    def ends_at(self) -> float:
        """When the next one ends by itself (Unix time)."""
        return min(map(_end, self.rows.values()), default=math.inf)


def _end(order: Order) -> float:
    return math.inf if order.until is None else order.until
