"""What the next owner of a home must know of its scopes, as JSON of at most 1,000 octets."""

import json
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

# The limit of a state in the store.
_MOST_OCTETS = 1_000


class SavedScope(NamedTuple):
    """One scope of a home that was handed over.

    Attributes:
        name: Its name for all processes.
        rest_s: Seconds for which its delay still runs.
        delay_s: Its delay after an ordinary response, if robots.txt or the policy made it longer than usual; else 0.
        strikes: Refusals that are not forgiven.
        failures: Failures in a row.
        openings: How often its circuit opened.
        is_open: Whether its circuit is open.
        pages: Requests for its pages, if it is an origin with a budget.
        octets: Octets of them.
        failed: Failures in a row that count in the budget.
    """

    name: str
    rest_s: float = 0.0
    delay_s: float = 0.0
    strikes: int = 0
    failures: int = 0
    openings: int = 0
    is_open: bool = False
    pages: int = 0
    octets: int = 0
    failed: int = 0

    @property
    def tells(self) -> bool:
        """Whether there is anything to tell."""
        return any(self[1:])

    @property
    def counts(self) -> bool:
        """Whether it counts refusals, failures or what was spent of a budget."""
        return any(self[3:])

    def worst(self, other: "SavedScope") -> "SavedScope":
        """Return the larger counts of both."""
        return self._replace(
            strikes=max(self.strikes, other.strikes),
            failures=max(self.failures, other.failures),
            openings=max(self.openings, other.openings),
            is_open=self.is_open or other.is_open,
            pages=max(self.pages, other.pages),
            octets=max(self.octets, other.octets),
            failed=max(self.failed, other.failed),
        )


class HomeState(NamedTuple):
    """The scopes of a home.

    Attributes:
        scopes: The scopes of which there is anything to tell.
        unclean_s: Seconds since a request may have been sent by an owner that ended without a word, if the scopes' delays were not
            kept since; None if they were.
    """

    scopes: tuple[SavedScope, ...] = ()
    unclean_s: float | None = None


def encoded(state: HomeState) -> tuple[str | None, float]:
    """Return the JSON, or None if there is nothing to tell; and the longest delay of the scopes that it has no space for."""
    first = {} if state.unclean_s is None else {"u": math.floor(state.unclean_s * 1_000) / 1_000}
    telling = sorted((each for each in state.scopes if each.tells), key=lambda each: -each.rest_s)
    count = len(telling)
    while len(text := _json(first, telling[:count]).encode()) > _MOST_OCTETS:
        count = count * 3 // 4
    left_out = max((each.rest_s for each in telling[count:]), default=0.0)
    return (text.decode() if count or first else None), left_out


def decoded(text: str | None) -> HomeState | None:
    """Read the JSON. None if it cannot be interpreted: another version may have written it."""
    if text is None:
        return HomeState()
    try:
        given = json.loads(text)
        scopes = tuple(_scope(each) for each in given.get("s", ()))
        unclean_s = given.get("u")
        return HomeState(scopes, None if unclean_s is None else _seconds(unclean_s))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _json(first: dict[str, float], scopes: Iterable[SavedScope]) -> str:
    rows = []
    for each in scopes:
        row: list[Any] = [
            each.name,
            math.ceil(each.rest_s * 1_000) / 1_000,
            math.ceil(each.delay_s * 1_000) / 1_000,
            each.strikes,
            each.failures,
            each.openings,
            int(each.is_open),
            each.pages,
            each.octets,
            each.failed,
        ]
        while not row[-1]:
            row.pop()
        rows.append(row)
    return json.dumps(first | ({"s": rows} if rows else {}), separators=(",", ":"), ensure_ascii=False)


def _scope(row: list[Any]) -> SavedScope:
    filled: list[Any] = row + [0] * (len(SavedScope._fields) - len(row))
    name, rest_s, delay_s, strikes, failures, openings, is_open, *spent = filled
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is no name")
    counts = (_count(strikes), _count(failures), _count(openings))
    return SavedScope(name, _seconds(rest_s), _seconds(delay_s), *counts, bool(is_open), *map(_count, spent))


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is no duration")
    return float(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
