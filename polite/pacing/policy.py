"""What the user decides about pace: the delay between requests, its limits, and how many requests may wait."""

from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Self, TypedDict, Unpack, get_args

from polite.errors import InvalidOption
from polite.options import boolean, integer, number
from polite.origin import Origin, Target
from polite.pacing.scopes import HomeKind, ScopePolicy, Scopes
from polite.pacing.throttle import REFUSALS, LongDelay

Options = tuple[tuple[str, Any], ...]
Override = tuple[Origin, Options]
"""An origin, and the options that differ there, each with its name. Made by `PacingPolicy.override`."""


class Overrides(tuple[Override, ...]):  # noqa: SLOT001 - a tuple with slots of its own cannot be
    """Pairs of an origin and its options, which are checked already. Each origin occurs once: the last pair counts.

    An index is shared by all tuples of a chain of `put`, so that a chain of n needs no n indexes. It may hold origins of a later
    tuple: an entry counts only if the pair at its position is that origin's.
    """

    positions_by_origin: dict[str, int]
    largest_values: Mapping[str, float] | None

    def __new__(cls, pairs: Iterable[Override] = ()) -> Self:
        own = {origin.text: (origin, options) for origin, options in pairs}
        return cls._of(own.values(), {text: position for position, text in enumerate(own)})

    @staticmethod
    def of(overrides: tuple[Override, ...]) -> "Overrides":
        """Return the same tuple if it has an index already."""
        return overrides if isinstance(overrides, Overrides) else Overrides(overrides)

    @classmethod
    def _of(cls, pairs: Iterable[Override], positions: dict[str, int]) -> Self:
        made = tuple.__new__(cls, pairs)
        made.positions_by_origin = positions
        made.largest_values = None
        return made

    def options(self, origin: Origin) -> Options:
        """Return the options of an origin; () without an override."""
        position = self._position(origin)
        return () if position is None else self[position][1]

    def put(self, origin: Origin, options: Options) -> Self:
        """Return a copy with these options for an origin. The other pairs are neither hashed nor checked again."""
        pair, position, end = (origin, options), self._position(origin), len(self)
        if position is not None:
            made = self._of((*self[:position], pair, *self[position + 1 :]), self.positions_by_origin)
            made.largest_values = self._most_with(options, instead_of=self[position][1])
            return made
        positions = self.positions_by_origin
        if len(positions) != end or positions.setdefault(origin.text, end) != end:
            # Another origin was put to this tuple already, and is in its index.
            positions = {each.text: at for at, (each, _) in enumerate(self)} | {origin.text: end}
        made = self._of((*self, pair), positions)
        made.largest_values = self._most_with(options)
        return made

    def changed(self, before: "Overrides") -> set[Origin]:
        """Return the origins whose options may differ from `before`. Cheap if one was made from the other."""
        pairs = [
            pair for old, new in zip(before, self, strict=False) if old is not new for pair in (old, new)
        ]
        return {origin for origin, _ in (*pairs, *before[len(self) :], *self[len(before) :])}

    def most(self, name: str) -> float:
        """Return the largest value of an option among all origins, or 0. For one that is no number: 1 if any origin has it."""
        if self.largest_values is None:
            self.largest_values = _largest({}, (each for _, options in self for each in options))
        return self.largest_values.get(name, 0.0)

    def _most_with(self, options: Options, *, instead_of: Options = ()) -> Mapping[str, float] | None:
        """Return the largest values with these options too; None if a largest value may be gone, so that all must be visited."""
        most = self.largest_values
        if most is None or any(0 < _size(value) >= most.get(name, 0.0) for name, value in instead_of):
            return None
        return _largest(most, options)

    def _position(self, origin: Origin) -> int | None:
        position = self.positions_by_origin.get(origin.text)
        return (
            position
            if position is not None and position < len(self) and self[position][0] == origin
            else None
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Overrides, (tuple(self),)


def _largest(most: Mapping[str, float], options: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    largest = dict(most)
    for name, value in options:
        if _size(value) > largest.get(name, 0.0):
            largest[name] = _size(value)
    return largest


def _size(value: object) -> float:
    return value if isinstance(value, int | float) else 1.0


class Anchor(Enum):
    """When a delay starts: at the response's first byte, or at the end of the permit's block (slower).

    >>> Anchor("end") is Anchor.END
    True

    Attributes:
        FIRST_BYTE: at the report (`Permit.report`), or at `Permit.began` if that is earlier.
        END: at the end of the block.
    """

    FIRST_BYTE = "first-byte"
    END = "end"


def by_origin(target: Target) -> tuple[Hashable, ...]:
    """Return the default scope: requests to one origin take turns, independently of other origins."""
    return (target.origin,)


class OriginPacing(TypedDict, total=False):
    """The fields of a `PacingPolicy` that may differ between origins."""

    min_delay: float
    max_crawl_delay: float
    jitter: float
    concurrency: int
    max_retry_after: float
    backoff: float
    max_backoff: float
    latency_factor: float
    max_latency_delay: float
    max_rate_limit_delay: float
    backoff_statuses: AbstractSet[int]
    on_long_delay: LongDelay
    obey_visit_time: bool
    may_undercut_site: bool
    circuit_failures: int
    circuit_rest: float
    max_pages: int | None
    max_bytes: int | None
    max_failures: int | None


_SECONDS = (
    "min_delay",
    "max_crawl_delay",
    "max_retry_after",
    "backoff",
    "max_backoff",
    "max_latency_delay",
    "max_rate_limit_delay",
    "circuit_rest",
)
# With 0, no permit could be entered in time.
_LEAST_HOLD_S = 0.001
_FACTORS = ("jitter", "latency_factor")
_COUNTS = {"concurrency": 1, "max_waiting": 1, "circuit_failures": 0}
_BUDGETS = ("max_pages", "max_bytes", "max_failures")
_CHOICES = ("obey_visit_time", "may_undercut_site", "backoff_statuses", "on_long_delay")
# A licence or a payment is asked for: waiting changes nothing (RFC 9110, 15.5.2 and 15.5.3).
_NEVER_BACK_OFF = frozenset({401, 402})


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingPolicy:
    """What the user decides about pace. Durations are in seconds of the monotonic clock.

    >>> PacingPolicy(min_delay=2.0).override("https://example.com", min_delay=5.0).at(Origin.of("https://example.com")).min_delay
    5.0

    Attributes:
        min_delay: The least delay of an origin after each request. Crawl-delay or Request-rate of its robots.txt lengthen it (T3).
        max_crawl_delay: The limit for Crawl-delay and Request-rate.
        on_long_delay: What becomes of a longer one: "cap" it to the limit, "obey" it, or "refuse" the
            origin's URLs (OriginDeclined; a frontier drops them).
        jitter: Up to this fraction of the delay is added at random.
        concurrency: Requests of one scope that may be under way at one time.
        scopes: The scopes at which a URL takes turns: Scopes, or a function of a Target that returns them, narrowest first.
        home: What one process of a shared crawl owns, and paces alone: a "host", a registrable "domain", an "address", or what a
            function returns for the root URL of an origin. Without a shared store it has no effect.
        anchor: When a delay starts.
        max_retry_after: The limit for the Retry-After of a response (T4).
        max_rate_limit_delay: The limit for what RateLimit and RateLimit-Policy of a response need; 0 to ignore them.
        backoff_statuses: The statuses that are refusals: 429 and 503, and perhaps 403 or 500.
        backoff: The first back-off after a refusal without Retry-After (T4). It doubles for each refusal in a row.
        max_backoff: The limit for that, and for `circuit_rest`.
        latency_factor: The least delay as a multiple of the last response time; 0 for none.
        max_latency_delay: The limit for that.
        obey_visit_time: Whether URLs wait outside the hours of the origin's Visit-time.
        may_undercut_site: Whether the throttle of `open_gate(throttle=...)` may set a shorter delay than this policy: then that of
            the throttle counts, even if the site requests a longer one. For sites of your own; see `override`.
        circuit_failures: Failures in a row that open an origin's circuit; 0 for never.
        circuit_rest: How long a circuit stays open, doubling each time. Then one request goes alone.
        max_pages: Pages of one origin that are requested at most; None for no limit, as for the other two. Once a budget is spent,
            the origin gets no more requests (OriginDeclined), and a frontier drops its tasks. With any budget, the gate holds about
            300 octets for each origin that it has requested, until it is closed.
        max_bytes: Octets of one origin's pages, as the crawler reports them (`Permit.received`), or by Content-Length. The page
            that reaches it is the last.
        max_failures: Failures of one origin in a row, those of its robots.txt included. With a concurrency above 1, requests in
            flight may fail beyond it.
        max_hold: A permit that is held for longer, entered or not, loses its turn (events.Reclaimed).
        max_waiting: Requests that may wait at one time.
        overrides: Options of single origins; see `override`.

    Raises:
        InvalidOption: A value is out of range.
    """

    min_delay: float = 1.0
    max_crawl_delay: float = 300.0
    jitter: float = 0.0
    concurrency: int = 1
    scopes: ScopePolicy | Scopes = by_origin
    home: HomeKind = "host"
    anchor: Anchor = Anchor.FIRST_BYTE
    max_retry_after: float = 86_400.0
    max_rate_limit_delay: float = 86_400.0
    backoff_statuses: AbstractSet[int] = REFUSALS
    backoff: float = 10.0
    max_backoff: float = 3_600.0
    latency_factor: float = 0.0
    max_latency_delay: float = 30.0
    on_long_delay: LongDelay = "cap"
    obey_visit_time: bool = True
    may_undercut_site: bool = False
    circuit_failures: int = 10
    circuit_rest: float = 60.0
    max_pages: int | None = None
    max_bytes: int | None = None
    max_failures: int | None = None
    max_hold: float = 3_600.0
    max_waiting: int = 1_000_000
    overrides: tuple[Override, ...] = Overrides()

    def __post_init__(self) -> None:
        for name in (*_SECONDS, *_FACTORS, *_COUNTS, *_CHOICES, *_BUDGETS):
            _check(name, getattr(self, name))
        object.__setattr__(self, "backoff_statuses", frozenset(self.backoff_statuses))
        number("PacingPolicy: max_hold", self.max_hold, least=_LEAST_HOLD_S)
        if not isinstance(self.anchor, Anchor):
            raise InvalidOption(
                f"PacingPolicy: anchor must be one of {[str(a) for a in Anchor]}, got {self.anchor!r}"
            )
        if not callable(self.scopes) and not isinstance(self.scopes, Scopes):
            raise InvalidOption(
                f"PacingPolicy: scopes must be Scopes(...) or a function of a Target that "
                f"returns a tuple of scopes, got {self.scopes!r}"
            )
        if not callable(self.home) and self.home not in ("host", "domain", "address"):
            raise InvalidOption(
                f'PacingPolicy: home must be "host", "domain", "address", or a function of a Target that returns a name, '
                f"got {self.home!r}"
            )
        if not isinstance(self.overrides, Overrides):
            object.__setattr__(self, "overrides", _checked(self.overrides))

    def override(self, origin: str | Origin, **options: Unpack[OriginPacing]) -> Self:
        """Return the same policy with other options for one origin: `policy.override("https://example.com", min_delay=5)`.

        Options that were overridden before and are not named now stay. The others follow the policy, also if it is replaced.

        Raises:
            InvalidURL: The origin cannot be parsed.
            InvalidOption: A value is out of range, or the option cannot differ between origins.
        """
        origin = origin if isinstance(origin, Origin) else Origin.of(origin)
        before = Overrides.of(self.overrides)
        own = dict(before.options(origin)) | _named(origin, options)
        # Only new options are checked: a policy of many origins is made in as many steps.
        return self.with_checked(overrides=before.put(origin, tuple(own.items())))

    def at(self, origin: Origin) -> Self:
        """Return the policy that applies to an origin, without overrides."""
        own = Overrides.of(self.overrides).options(origin)
        return self.with_checked(**dict(own), overrides=Overrides()) if own else self

    def with_checked(self, **checked: object) -> Self:
        """Return the same policy with other values, which are checked already. No part of the public API."""
        changed = object.__new__(type(self))
        for field in fields(self):
            value = checked[field.name] if field.name in checked else getattr(self, field.name)
            object.__setattr__(changed, field.name, value)
        return changed


def _checked(overrides: object) -> Overrides:
    """Raises InvalidOption."""
    try:
        pairs = [(origin, tuple(_named(origin, dict(own)).items())) for origin, own in overrides]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidOption):
            raise
        raise InvalidOption(
            f"PacingPolicy: overrides must be made by PacingPolicy.override, got {overrides!r}"
        ) from error
    for origin, _ in pairs:
        if not isinstance(origin, Origin):
            raise InvalidOption(
                f"PacingPolicy: overrides must be made by PacingPolicy.override, got the origin {origin!r}"
            )
    return Overrides(pairs)


def _check(name: str, value: object) -> None:
    """Refuse a value that a field of the policy, or of an override, cannot have."""
    option = f"PacingPolicy: {name}"
    if name in {"obey_visit_time", "may_undercut_site"}:
        boolean(option, value)
    elif name in _BUDGETS:
        if value is not None:
            integer(f"{option} (None for no limit)", value, least=1)
    elif name == "backoff_statuses":
        _require_statuses(option, value)
    elif name == "on_long_delay":
        if value not in get_args(LongDelay):
            raise InvalidOption(f'must be "cap", "obey" or "refuse", got {value!r}', option=option)
    elif name in _COUNTS:
        integer(option, value, least=_COUNTS[name])
    else:
        number(option, value)


def _named(origin: object, options: Mapping[str, object]) -> dict[str, Any]:
    """Return the options if each may differ between origins. Raises InvalidOption."""
    if unknown := sorted(set(options) - set(OriginPacing.__annotations__)):
        raise InvalidOption(
            f"PacingPolicy.override({str(origin)!r}): {', '.join(map(repr, unknown))} cannot differ between origins; "
            f"these can: {', '.join(OriginPacing.__annotations__)}"
        )
    for name, value in options.items():
        _check(name, value)
    return {
        name: frozenset(value) if isinstance(value, AbstractSet) else value for name, value in options.items()
    }


def _require_statuses(option: str, value: object) -> None:
    if isinstance(value, AbstractSet) and all(
        type(status) is int and 400 <= status <= 599 and status not in _NEVER_BACK_OFF for status in value
    ):
        return
    raise InvalidOption(
        f"must be a set of statuses from 400 to 599, without 401 and 402 (waiting changes nothing there), got {value!r}",
        option=option,
    )
