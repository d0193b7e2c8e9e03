"""Task and Admission: a URL in a frontier, and the result of putting it there."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from polite.origin import Origin, Target

# How an identity begins: of a task with a key, which follows, and of one that is not unique. A shared store adds a random text.
KEYED, NOT_UNIQUE = "=", "*"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Task:
    """A URL to fetch, with what its order depends on.

    Made by `Frontier.put`; equal to itself only.

        >>> from polite import Target, Task
        >>> task = Task(target=Target.of("https://example.com/a"), number=1, depth=2)
        >>> task.url, task.depth, task.tries
        ('https://example.com/a', 2, 0)

    Attributes:
        target: what to fetch.
        number: 1 for the first task that was put, and so on. A task keeps it when it is requeued.
        priority: the greater goes first, if the scheduler uses it.
        depth: links from where the crawl began.
        deadline: Unix time, or None.
        not_before: Unix time before which it must not be fetched, or None.
        tries: how often it was given to a worker before.
        queued_at: monotonic seconds when it was put or requeued.
        payload: data of the caller.
        identity: what a store finds it by, if not by its URL; see `key` and `unique`.
    """

    target: Target
    number: int
    priority: float = 0
    depth: int = 0
    deadline: float | None = None
    not_before: float | None = None
    tries: int = 0
    queued_at: float = field(default=0.0, repr=False)
    payload: Any = field(default=None, repr=False)
    identity: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The canonical URL to fetch, without credentials and fragment."""
        return self.target.url

    @property
    def origin(self) -> Origin:
        """The origin whose turns it takes."""
        return self.target.origin

    @property
    def key(self) -> str | None:
        """What its duplicates are found by instead of the URL, if `put` was given one."""
        return self.identity[1:] if self.identity is not None and self.unique else None

    @property
    def unique(self) -> bool:
        """Whether it has duplicates: False if it was put with `unique=False`."""
        return self.identity is None or not self.identity.startswith(NOT_UNIQUE)

    @property
    def seen_as(self) -> str:
        """The text that it has in common with its duplicates."""
        return seen_as(self.target, self.identity)


class Admission(Enum):
    """The result of a `put`. True if the task waits now.

        >>> from polite import Admission
        >>> bool(Admission.WAITING), bool(Admission.DUPLICATE)
        (True, False)

    Attributes:
        WAITING: the task is queued. A thread may still decide about a long URL by hostile rules; if the rules disallow it, a
            Refused event is sent.
        DUPLICATE: the same canonical URL, or the same key at the origin, is queued, in flight, or was done before.
        REFUSED: disallowed by robots.txt as known now. A Refused event names the line.
        INVALID: not a URL that can be fetched (`put_many` only; `put` raises InvalidURL).
    """

    WAITING = "waiting"
    DUPLICATE = "duplicate"
    REFUSED = "refused"
    INVALID = "invalid"

    def __bool__(self) -> bool:
        return self is Admission.WAITING


def seen_as(target: Target, identity: str | None) -> str:
    """Return the text that a task has in common with its duplicates: its URL, or its identity at the origin."""
    return f"{target.origin.text}{target.path}" if identity is None else f"{target.origin.text}\n{identity}"
