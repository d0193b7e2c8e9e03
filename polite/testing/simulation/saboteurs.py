"""What users plug in, and what breaks: listeners and throttles that raise or answer nonsense, a disk that is full for a while."""

import asyncio
from collections import ChainMap, OrderedDict, UserDict
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from http.client import HTTPMessage
from random import Random
from types import MappingProxyType
from typing import Any

from polite.errors import StoreFailed
from polite.events import Event
from polite.pacing.effective_policy import throttle_of
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.policy import PacingPolicy
from polite.pacing.reported_outcome import Headers


class Sabotaged(Exception):
    """Raised on purpose."""


class FaultyListener:
    """Passes each event on, and raises now and then.

    Args:
        tell: gets each event first.
        cancels: raise CancelledError, and not an error of its own.
    """

    def __init__(self, tell: Callable[[Event], None], chance: Random, *, cancels: bool) -> None:
        self._tell = tell
        self._chance = chance
        self._cancels = cancels

    def __call__(self, event: Event, /) -> None:
        """See ports.Listener."""
        self._tell(event)
        if self._chance.random() < 0.1:
            raise asyncio.CancelledError if self._cancels else Sabotaged("a listener")


class FaultyThrottle:
    """The throttle of the policy in force, which raises now and then, or (`nonsense`) answers what is no Pause."""

    def __init__(self, policy: Callable[[], PacingPolicy], chance: Random, *, nonsense: bool) -> None:
        self._policy = policy
        self._chance = chance
        self._nonsense = nonsense

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        """See ports.Throttle."""
        if self._chance.random() < 0.9:
            return throttle_of(self._policy()).rest(outcome, given)
        if not self._nonsense:
            raise Sabotaged("a throttle")
        answers: list[Any] = [
            None, Pause(float("nan"), ""), Pause(-1.0, ""), Pause("5", ""), Pause(Decimal(3), ""), object(),  # type: ignore[arg-type]
        ]  # fmt: skip
        answer: Pause = self._chance.choice(answers)
        return answer


class FullDisk:
    """Jobs of threads of their own fail between two times (world seconds), as writes to a full disk do."""

    def __init__(self, begins: float, ends: float, now: Callable[[], float], met: Callable[[], None]) -> None:
        self._begins = begins
        self._ends = ends
        self._now = now
        self._met = met

    def __call__(self, work: Callable[[], Any]) -> Exception | None:
        """The error that work fails with now, or None. A file can be closed on a full disk."""
        if not self._begins <= self._now() < self._ends or _ends_a_file(work):
            return None
        self._met()
        return StoreFailed("simulated: the disk is full")


def _ends_a_file(work: object) -> bool:
    while isinstance(work, partial):
        work = work.func
    name = getattr(work, "__name__", "")
    return any(word in name for word in ("close", "shutdown", "serve_all"))


def odd_headers(chance: Random, fields: dict[str, str]) -> Headers:
    """The fields in one of the mappings that HTTP clients and their users hand on."""
    name = chance.choice([str.lower, str.upper, str.title])
    spelt = {name(field): value for field, value in fields.items()}
    message: Any = HTTPMessage()
    for field, value in spelt.items():
        message[field] = value
    every: list[Headers] = [
        spelt, OrderedDict(spelt), MappingProxyType(spelt), UserDict(spelt), ChainMap(spelt), message, list(spelt.items()),
        {field.encode(): value.encode() for field, value in spelt.items()},
        [(field.encode(), value.encode()) for field, value in spelt.items()],
    ]  # fmt: skip
    return chance.choice(every)
