"""What the user decides about pace: how long an origin rests between requests, and how much may wait."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Self, TypedDict, Unpack

from polite.errors import InvalidOption
from polite.origin import Origin, Target
from polite.pacing.overrides import Override, Overrides
from polite.pacing.scopes import ScopePolicy, Scopes


class Anchor(Enum):
    """From when a turn is counted: the response's first byte, or the end of the permit's block (slower)."""

    FIRST_BYTE = "first-byte"
    END = "end"


def by_origin(target: Target) -> tuple[Hashable, ...]:
    """The default scope: requests to one origin take turns, whatever other origins do."""
    return (target.origin,)


class OriginPacing(TypedDict, total=False):
    """The fields of a PacingPolicy that may differ from origin to origin."""

    min_delay: float
    max_crawl_delay: float
    jitter: float
    concurrency: int
    max_retry_after: float
    backoff: float
    max_backoff: float
    latency_factor: float
    max_latency_delay: float
    obey_visit_time: bool
    circuit_failures: int
    circuit_rest: float


_SECONDS = (
    "min_delay",
    "max_crawl_delay",
    "max_retry_after",
    "backoff",
    "max_backoff",
    "max_latency_delay",
    "circuit_rest",
)
# At zero, no permit would have time to be entered.
_LEAST_HOLD_S = 0.001
_FACTORS = ("jitter", "latency_factor")
_COUNTS = {"concurrency": 1, "max_waiting": 1, "circuit_failures": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingPolicy:
    """Durations are in seconds of the monotonic clock.

    `min_delay`: an origin rests at least so long after each request; a file's Crawl-delay or Request-rate makes that longer, up
    to `max_crawl_delay` (T3). `jitter`: up to this fraction of the delay is added at random, never taken away. `concurrency`:
    requests of one scope under way at one time. `scopes`: which turns a URL must take, narrowest first. `anchor`: from when a
    turn is counted. After 429 or 503 an origin rests as its Retry-After says, up to `max_retry_after`, or, without one,
    `backoff` doubling up to `max_backoff` (T4). `latency_factor`: it rests at least so many times what the last answer took, up to
    `max_latency_delay`. `obey_visit_time`: out of the hours that a file's Visit-time names, its origin's URLs wait. After
    `circuit_failures` failures in a row (0: never) it rests for `circuit_rest`, doubling up to `max_backoff`, and then one request
    goes alone. `max_hold`: a permit held for longer, entered or not, gives its turn back (events.Reclaimed). `max_waiting` bounds
    the requests that may wait at one time. `overrides`: see `override`.
    """

    min_delay: float = 1.0
    max_crawl_delay: float = 300.0
    jitter: float = 0.0
    concurrency: int = 1
    scopes: ScopePolicy | Scopes = by_origin
    anchor: Anchor = Anchor.FIRST_BYTE
    max_retry_after: float = 86_400.0
    backoff: float = 10.0
    max_backoff: float = 3_600.0
    latency_factor: float = 0.0
    max_latency_delay: float = 30.0
    obey_visit_time: bool = True
    circuit_failures: int = 10
    circuit_rest: float = 60.0
    max_hold: float = 3_600.0
    max_waiting: int = 1_000_000
    overrides: tuple[Override, ...] = Overrides()

    def __post_init__(self) -> None:
        for name in (*_SECONDS, *_FACTORS, *_COUNTS, "obey_visit_time"):
            _check(name, getattr(self, name))
        if type(self.max_hold) not in (int, float) or not _LEAST_HOLD_S <= self.max_hold < math.inf:
            raise InvalidOption(
                f"PacingPolicy.max_hold={self.max_hold!r}: a finite number of {_LEAST_HOLD_S} or more is needed"
            )
        if not isinstance(self.anchor, Anchor):
            raise InvalidOption(
                f"PacingPolicy.anchor={self.anchor!r}: one of {[str(a) for a in Anchor]} is needed"
            )
        if not callable(self.scopes) and not isinstance(self.scopes, Scopes):
            raise InvalidOption(
                f"PacingPolicy.scopes={self.scopes!r}: Scopes(...) or a function of a Target that gives a tuple of scopes is needed"
            )
        if not isinstance(self.overrides, Overrides):
            object.__setattr__(self, "overrides", _checked(self.overrides))

    def override(self, origin: str | Origin, **options: Unpack[OriginPacing]) -> Self:
        """A new policy, the same but for one origin: `policy.override("https://example.com", min_delay=5)`.

        Looser or stricter; what was said of that origin before stays where it is not said anew. The other fields of the origin
        follow the policy, also when that is replaced. Raises InvalidURL, InvalidOption.
        """
        origin = origin if isinstance(origin, Origin) else Origin.of(origin)
        before = Overrides.of(self.overrides)
        own = dict(before.options(origin)) | _named(origin, options)
        # Only what is new is checked: a policy of many origins is made in as many steps.
        return self.with_checked(overrides=before.put(origin, tuple(own.items())))

    def at(self, origin: Origin) -> Self:
        """The policy that holds at an origin."""
        own = Overrides.of(self.overrides).options(origin)
        return self.with_checked(**dict(own), overrides=Overrides()) if own else self

    def with_checked(self, **checked: object) -> Self:
        """The same with other values, which are known to be good."""
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
            f"PacingPolicy.overrides={overrides!r}: use PacingPolicy.override to make them"
        ) from error
    for origin, _ in pairs:
        if not isinstance(origin, Origin):
            raise InvalidOption(f"PacingPolicy.overrides: {origin!r} is no Origin; use PacingPolicy.override")
    return Overrides(pairs)


def _check(name: str, value: object) -> None:
    """Raises InvalidOption for a value that a field, of the policy or of an origin, cannot have."""
    if name == "obey_visit_time":
        if type(value) is not bool:
            raise InvalidOption(f"PacingPolicy.{name}={value!r}: True or False is needed")
    elif name in _COUNTS:
        if type(value) is not int or value < _COUNTS[name]:
            raise InvalidOption(
                f"PacingPolicy.{name}={value!r}: a whole number of {_COUNTS[name]} or more is needed"
            )
    elif type(value) not in (int, float) or not 0 <= value < math.inf:  # type: ignore[operator]
        raise InvalidOption(f"PacingPolicy.{name}={value!r}: a finite number of 0 or more is needed")


def _named(origin: object, options: Mapping[str, object]) -> dict[str, Any]:
    """The options, if each may differ from origin to origin. Raises InvalidOption."""
    if unknown := sorted(set(options) - set(OriginPacing.__annotations__)):
        raise InvalidOption(
            f"PacingPolicy.override({str(origin)!r}): {', '.join(map(repr, unknown))} cannot differ from origin to origin; "
            f"these can: {', '.join(OriginPacing.__annotations__)}"
        )
    for name, value in options.items():
        _check(name, value)
    return dict(options)
