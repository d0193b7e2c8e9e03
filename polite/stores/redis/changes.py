"""Changes: what users of a partition tell and ask it with its next batch, and what each entry costs the server."""

from dataclasses import dataclass, field, fields
from typing import NamedTuple


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
