"""One batch for step.lua, and its reply: what a process tells and asks one partition of a crawl."""

import json
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol


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


class Ended(NamedTuple):
    """A task that ended: `end` is "done", "refused" or "dropped". It needs no fence: the page was fetched."""

    home: str
    origin: str
    digest: str
    end: str


class PutEntry(NamedTuple):
    """A task to store, if its URL is new, or is done and put `again`.

    Attributes:
        digest: What tells it from the other tasks of its origin. That of a task that is not unique begins with `*`.
        row: JSON that the script stores as it is: path, priority, depth, deadline, not_before, payload, key; and its identity, if
            it is not found by its URL.
        key: The scheduler's key; None in a crawl in the order of puts.
        ready_in: Microseconds until the task may be given out; None: now.
        number: The number that the server gave it when it was put before, and that it may have lost; None at first.
    """

    home: str
    origin: str
    digest: str
    row: str
    key: float | None
    again: bool
    ready_in: int | None
    number: int | None = None


class Lookup(NamedTuple):
    """Whether a put of this URL would be a duplicate."""

    home: str
    origin: str
    digest: str
    again: bool


class Requeued(NamedTuple):
    """A task that was tried and waits again, after `ready_in` microseconds; None: now."""

    home: str
    origin: str
    digest: str
    tries: int
    ready_in: int | None


class Out(NamedTuple):
    """A task that was given to a worker. If its session ends without a word, that counts as a try."""

    home: str
    fence: int
    origin: str
    digest: str


class Back(NamedTuple):
    """A task that was given to a worker and was not sent."""

    home: str
    fence: int
    origin: str
    digest: str


class Leave(NamedTuple):
    """A home that this process gives up.

    Attributes:
        rest: Microseconds until it may be requested again.
        state: What the next owner must know: at most 1,000 octets of JSON, opaque to the script.
    """

    home: str
    fence: int
    rest: int
    state: str | None


class Postpone(NamedTuple):
    """An origin that gives no turn for so many microseconds, though other origins of its home may."""

    home: str
    fence: int
    origin: str
    ready_in: int


class Mine(NamedTuple):
    """A home that this process believes to hold."""

    home: str
    fence: int


class Hold(NamedTuple):
    """A long rest of a held home (microseconds), written through; and its state, None to keep what is stored."""

    home: str
    fence: int
    rest: int
    state: str | None


class Load(NamedTuple):
    """Asks for the first tasks of an origin of a held home."""

    home: str
    fence: int
    origin: str
    limit: int


# What the script does for one entry, in units of work of about 10 us of the server (step.lua).
_COSTS = {
    "puts": 1.0,
    "ended": 1.0,
    "met": 0.3,
    "requeued": 1.5,
    "outs": 0.6,
    "backs": 0.4,
    "leaves": 1.2,
    "postpones": 1.2,
    "holds": 0.5,
    "takes": 1.2,
    "loads": 1.0,
}
_ROW_COST = 0.2
# The script reads as many characters in a unit of work.
_UNIT_CHARACTERS = 4_000


def cost_of(kind: str, entry: object) -> float:
    """Return what the script does for an entry of this list of Changes, in units of work."""
    cost = _COSTS[kind]
    if isinstance(entry, PutEntry):
        cost += len(entry.row) / _UNIT_CHARACTERS
    elif isinstance(entry, Load):
        cost += entry.limit * _ROW_COST
    return cost


@dataclass(slots=True)
class Changes:
    """What users of a partition add to its next batch. Applied in the order of the design's `step`, not of this list.

    Attributes:
        takes: Homes that are wanted for single permits.
    """

    ended: list[Ended] = field(default_factory=list)
    puts: list[PutEntry] = field(default_factory=list)
    met: list[Lookup] = field(default_factory=list)
    requeued: list[Requeued] = field(default_factory=list)
    outs: list[Out] = field(default_factory=list)
    backs: list[Back] = field(default_factory=list)
    leaves: list[Leave] = field(default_factory=list)
    postpones: list[Postpone] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    takes: list[str] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any(getattr(self, each.name) for each in fields(self))

    @property
    def cost(self) -> float:
        """What the script does for all of them, in units of work."""
        return sum(cost_of(each.name, entry) for each in fields(self) for entry in getattr(self, each.name))


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
        """Read the script's JSON. Lua writes an empty list as `{}`, 0 for a duplicate, and -1 for an age that is unknown."""
        given: dict[str, Any] = json.loads(text)
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


def _list(value: list[Any]) -> list[Any]:
    return value or []


def _rows(value: list[Any]) -> list[TaskRow]:
    return [TaskRow(digest, int(number), int(tries), text) for digest, number, tries, text in _list(value)]


def _taken(value: list[Any]) -> Taken:
    home, fence, age, clean, free, state = value
    return Taken(home, int(fence), None if age < 0 else int(age), bool(clean), int(free), state or None)


_READERS: dict[str, Callable[[Any], Any]] = {
    "puts": lambda value: [int(number) or None for number in _list(value)],
    "met": lambda value: [bool(each) for each in _list(value)],
    "gone": _list,
    "taken": lambda value: [_taken(each) for each in _list(value)],
    "recalls": _list,
    "picked": lambda value: [
        (_taken(each[:6]), [(origin, _rows(rows)) for origin, rows in _list(each[6])])
        for each in _list(value)
    ],
    "loads": lambda value: [_rows(rows) for rows in _list(value)],
    "news": lambda value: [(home, origin, _rows(rows)) for home, origin, rows in _list(value)],
    "given_up": lambda value: [(origin, _rows([row])[0]) for origin, *row in _list(value)],
    "lost": bool,
    "starving": bool,
    "all_closed": bool,
    "next_in": lambda value: None if value < 0 else int(value),
}
