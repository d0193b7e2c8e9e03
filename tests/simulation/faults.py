"""Injected faults: listeners and throttles that raise or return invalid values, and a disk that is full for a while."""

import asyncio
import sqlite3
from collections import ChainMap, OrderedDict, UserDict
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from http.client import HTTPMessage
from random import Random
from types import MappingProxyType
from typing import Any
from unittest import mock

from polite.events import Event
from polite.http.header_fields import Headers
from polite.pacing.effective_policy import throttle_of
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.policy import PacingPolicy


class InjectedFault(Exception):
    """An error raised on purpose."""


class FaultyListener:
    def __init__(self, tell: Callable[[Event], None], chance: Random, *, cancels: bool) -> None:
        self._tell = tell
        self._chance = chance
        self._cancels = cancels

    def __call__(self, event: Event, /) -> None:
        self._tell(event)
        if self._chance.random() < 0.1:
            raise asyncio.CancelledError if self._cancels else InjectedFault("a listener")


class FaultyThrottle:
    """The policy's own throttle. Once it has `begun`, it has faults.

    Args:
        faults: "throttle" sometimes raises, "throttle-nonsense" sometimes returns an invalid value, and "throttle-hasty" returns no
            delay otherwise.

    Attributes:
        begun: whether the gate is open, which would be refused otherwise.
    """

    begun = False

    def __init__(self, policy: Callable[[], PacingPolicy], chance: Random, faults: AbstractSet[str]) -> None:
        self._policy = policy
        self._chance = chance
        self._faults = faults

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        failing = self.begun and self._faults & {"throttle", "throttle-nonsense"}
        if not failing or self._chance.random() < 0.9:
            hasty = self.begun and "throttle-hasty" in self._faults
            return Pause(0.0, "hasty") if hasty else throttle_of(self._policy()).rest(outcome, given)
        if "throttle-nonsense" not in self._faults:
            raise InjectedFault("a throttle")
        invalid: list[Any] = [
            None, Pause(float("nan"), ""), Pause(-1.0, ""), Pause("5", ""), Pause(Decimal(3), ""), object(),  # type: ignore[arg-type]
        ]  # fmt: skip
        returned: Pause = self._chance.choice(invalid)
        return returned


class FullDisk:
    """A disk that is full for a while: SQLite cannot commit meanwhile.

    Args:
        begins, ends: world seconds.
        used: called when a commit fails.
    """

    def __init__(self, begins, ends, now, used):
        self._begins = begins
        self._ends = ends
        self._now = now
        self._used = used

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within the block, new connections write to this disk."""
        disk, connect = self, sqlite3.connect

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                if sql == "COMMIT":
                    disk.commit()
                return super().execute(sql, *values)

        with mock.patch("sqlite3.connect", partial(connect, factory=Connection)):
            yield

    def commit(self) -> None:
        if self._begins <= self._now() < self._ends:
            self._used()
            error = sqlite3.OperationalError("simulated: the disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error


def odd_headers(chance: Random, fields: dict[str, str]) -> Headers:
    name = chance.choice([str.lower, str.upper, str.title])
    spelt = {name(field): value for field, value in fields.items()}
    message: Any = HTTPMessage()
    for field, value in spelt.items():
        message[field] = value
    forms: list[Headers] = [
        spelt, OrderedDict(spelt), MappingProxyType(spelt), UserDict(spelt), ChainMap(spelt), message, list(spelt.items()),
        {field.encode(): value.encode() for field, value in spelt.items()},
        [(field.encode(), value.encode()) for field, value in spelt.items()],
    ]  # fmt: skip
    return chance.choice(forms)
