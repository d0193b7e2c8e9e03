"""step.lua: what all batches of a process say, what the script replies, and how the server is not reached."""

import json
import math
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from polite.errors import StoreFailed

# How long a call waits for a server that does not respond (seconds).
PATIENCE_S = 60.0


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


def away(store: str, wall: float, seconds: float, because: str) -> StoreFailed:
    """Return the error of a call that waited for a store which has not responded for so many seconds, up to now (Unix time)."""
    since = f"{datetime.fromtimestamp(wall - seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    why = f"{store} has not responded since {since} ({seconds:.0f} s); the last error: {because}"
    return StoreFailed(why, may_pass=True)


_LONGEST_BEAT_S = 2.5


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """What all processes of a crawl agree on.

    Attributes:
        lease_s: How long a session lasts without a batch.
        keyed: Whether tasks have scheduler's keys.
        max_tries: How often a task is given out before it is dropped.
        max_done: How many finished URLs a partition remembers.
    """

    lease_s: float
    keyed: bool
    max_tries: int
    max_done: int

    @property
    def beat_s(self) -> float:
        """The longest time between two batches: for so long an owner does not hear that others want its homes."""
        return min(self.lease_s / 6, _LONGEST_BEAT_S)

    @property
    def margin_s(self) -> float:
        """What a session's deadline lies before the server's: clock rates differ by 1 % at most."""
        return 0.2 + 0.01 * self.lease_s


def microseconds(seconds: float) -> int:
    """Return whole microseconds, rounded up; at most 115 days, which the script's numbers hold exactly."""
    return math.ceil(min(max(seconds, 0.0) * 1e6, 1e13))


class TaskRow(NamedTuple):
    """A stored task: `text` is the JSON of its PutEntry."""

    digest: str
    number: int
    tries: int
    text: str


class Taken(NamedTuple):
    """A home that is ours now.

    Attributes:
        age: Microseconds since it was left, or since its last owner's lease ended; None if it was never owned.
        clean: Whether it was left: then only `free` counts. Otherwise a request may have been sent just before `age`.
        free: Microseconds for which it must not be requested yet.
        state: What its last owner left.
    """

    home: str
    fence: int
    age: int | None
    clean: bool
    free: int
    state: str | None


@dataclass(slots=True)
class StepReply:
    """The reply of step.lua. Times are microseconds.

    Attributes:
        err: "emptied", "other crawl" or "old": nothing was done.
        lost: The session was ended by others; of the batch, only `ended`, `puts`, `met` and `requeued` were done.
        puts: The number of each task that was put; None for a duplicate.
        met: Whether each URL would be a duplicate.
        gone: Homes of `mine` that belong to others.
        taken: Homes of `takes` that are ours now.
        recalls: Our homes that others want.
        picked: Homes from the line, each with the first rows of its origins.
        loads: The rows of each Load, in order; empty if the home is not ours.
        news: Origins of our homes that got tasks from others, with their first rows.
        given_up: Tasks dropped because their sessions ended without a word too often, each with its origin.
        held: The homes that this session has.
        fair: The homes that each session should have.
        live: Sessions that are live, this one included.
        inline: Homes that wait in the line and may be taken now.
        starving: Whether a session found too few homes a moment ago.
        waiting, done, refused, dropped: The partition's tasks; those in flight count as waiting.
        nputs: How many puts there have ever been.
        all_closed: Whether all live sessions are closed.
        next_in: Microseconds until a task or home becomes ready; None if none will by time alone.
    """

    err: str | None = None
    lost: bool = False
    born: str = ""
    epoch: int = 0
    run: str = ""
    quiet: int = 0
    puts: list[int | None] = field(default_factory=list)
    met: list[bool] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    recalls: list[str] = field(default_factory=list)
    picked: list[tuple[Taken, list[tuple[str, list[TaskRow]]]]] = field(default_factory=list)
    loads: list[list[TaskRow]] = field(default_factory=list)
    news: list[tuple[str, str, list[TaskRow]]] = field(default_factory=list)
    given_up: list[tuple[str, TaskRow]] = field(default_factory=list)
    held: int = 0
    fair: int = 0
    live: int = 1
    inline: int = 0
    starving: bool = False
    waiting: int = 0
    done: int = 0
    refused: int = 0
    dropped: int = 0
    nputs: int = 0
    all_closed: bool = False
    next_in: int | None = None

    @classmethod
    def decode(cls, text: str) -> "StepReply":
        """Read the script's JSON. Lua writes 0 for a duplicate, and -1 for an age that is unknown."""
        given = decoded(text)
        for name in _READERS.keys() & given.keys():
            given[name] = _READERS[name](given[name])
        return cls(**given)

    @property
    def server(self) -> tuple[str, int, str]:
        """What differs after a restart, a failover or an emptied store.

        Not the epoch alone: of two servers that follow one another, the second may have lost that there was a first.
        """
        return self.born, self.epoch, self.run

    def drop_rows(self, digests: AbstractSet[str]) -> None:
        """Take out the rows of these tasks."""

        def kept(rows: list[TaskRow]) -> list[TaskRow]:
            return [row for row in rows if row.digest not in digests]

        self.picked = [
            (taken, [(origin, kept(rows)) for origin, rows in origins]) for taken, origins in self.picked
        ]
        self.loads = [kept(rows) for rows in self.loads]
        self.news = [(home, origin, kept(rows)) for home, origin, rows in self.news]


def decoded(text: str | bytes) -> dict[str, Any]:
    """Read JSON of a script. Lua writes an empty list as `{}`."""
    given: dict[str, Any] = json.loads(text, object_hook=lambda each: each or [])
    return given


def _rows(value: list[Any]) -> list[TaskRow]:
    return [TaskRow(digest, int(number), int(tries), text) for digest, number, tries, text in value]


def _taken(value: list[Any]) -> Taken:
    home, fence, age, clean, free, state = value
    return Taken(home, int(fence), None if age < 0 else int(age), bool(clean), int(free), state or None)


_READERS: dict[str, Callable[[Any], Any]] = {
    "puts": lambda value: [int(number) or None for number in value],
    "met": lambda value: [bool(each) for each in value],
    "taken": lambda value: [_taken(each) for each in value],
    "picked": lambda value: [
        (_taken(taken), [(origin, _rows(rows)) for origin, rows in origins]) for *taken, origins in value
    ],
    "loads": lambda value: [_rows(rows) for rows in value],
    "news": lambda value: [(home, origin, _rows(rows)) for home, origin, rows in value],
    "given_up": lambda value: [(origin, _rows([row])[0]) for origin, *row in value],
    "next_in": lambda value: None if value < 0 else int(value),
}
