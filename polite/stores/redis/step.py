"""One batch for step.lua, and the link that takes it to the server."""

import json
import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

from polite.stores.redis.changes import Changes


class Unreached(Exception):
    """The server was not reached, or its reply was lost: whether the batch was applied is not known. Trying again may help.

    Args:
        because: What was met.
        slow: Whether there is a server, which is late, or says that it loads its data or is busy.

    Attributes:
        slow: As given.
    """

    def __init__(self, because: str, *, slow: bool = False) -> None:
        super().__init__(because)
        self.slow = slow


class Link(Protocol):
    """The connection to a server that runs step.lua.

    Attributes:
        name: The server's address without credentials.
    """

    @property
    def name(self) -> str: ...

    async def step(self, prefix: str, request: str) -> str:
        """Run one batch atomically, and return the reply. It ends within 2.5 s.

        Raises:
            Unreached: See there.
            StoreFailed: Trying again does not help. The message says what to change.
        """
        ...


class Mine(NamedTuple):
    """A home that this process believes to hold."""

    home: str
    fence: int


@dataclass(slots=True)
class StepRequest:
    """The argument of step.lua. Times are microseconds.

    Attributes:
        session: The session's name, which no other session has.
        first: Whether it is the session's first batch.
        seq: Grows with each batch of the session; the script refuses one that is not above the last.
        lease, beat: How long the session is renewed for, and how often a process sends a batch at least.
        born: The crawl's random name, as the process knows it; None before the first reply.
        newborn: The name to give the crawl if it has none.
        gate_alone: Whether no frontier uses the crawl in this process: then an emptied store begins a new crawl.
        keyed: Whether tasks have scheduler's keys.
        max_tries: How often a task is given out before it is dropped.
        max_done: How many finished URLs this partition remembers.
        closed: Whether this process puts no more tasks of its own.
        bye: Whether the session ends with this batch.
        room: How many homes the process can pick now.
        mine: What the process holds, after an epoch change or a batch without an answer; None otherwise.
        mine_begins, mine_ends: Whether this is the first, and the last, part of that. Before the last one nothing else is done.
        changes: The rest.
    """

    session: str
    first: bool
    seq: int
    lease: int
    beat: int
    born: str | None
    newborn: str
    gate_alone: bool
    keyed: bool
    max_tries: int
    max_done: int
    closed: bool
    bye: bool
    room: int
    mine: list[Mine] | None
    changes: Changes
    mine_begins: bool = True
    mine_ends: bool = True

    def encode(self) -> str:
        """Return the JSON that the script decodes; empty lists and None are left out."""
        given: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "changes"
        }
        given |= {each.name: getattr(self.changes, each.name) for each in fields(self.changes)}
        given["cost"] = round(self.changes.cost, 1)
        if self.mine is None:
            del given["mine_begins"], given["mine_ends"]
        # An empty `mine` counts: the process holds nothing.
        kept = {
            name: value
            for name, value in given.items()
            if value is not None and (value != [] or name == "mine")
        }
        return json.dumps(kept, separators=(",", ":"))


def microseconds(seconds: float) -> int:
    """Return whole microseconds, rounded up; at most 115 days, which the script's numbers hold exactly."""
    return math.ceil(min(max(seconds, 0.0) * 1e6, 1e13))
