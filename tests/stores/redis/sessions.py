"""A process of a shared crawl whose connection and users are scripted."""

from collections.abc import Callable
from itertools import count

from polite.events import Event
from polite.pacing.homes import TakenHome
from polite.stores.redis.home import Home
from polite.stores.redis.session import Session
from polite.stores.redis.step_reply import StepReply, TaskRow
from polite.testing import LoopClock
from tests.stores.redis.scripted_link import Request, ScriptedLink


class Pacer:
    """A tenant that records what it is told."""

    def __init__(self) -> None:
        self.taken: list[TakenHome] = []
        self.handed: list[str] = []
        self.waiting: set[str] = set()
        self.rest_s = 0.0

    def take_over(self, taken: TakenHome) -> None:
        self.taken.append(taken)

    def hand_over(self, home: str) -> tuple[float, str | None]:
        self.handed.append(home)
        return self.rest_s, f"state of {home}"

    def waits(self, home: str) -> bool:
        return home in self.waiting


class Frontier:
    """A user that holds tasks of each home until the test lets it release them."""

    def __init__(self, session: Session, *, room: int = 100) -> None:
        self.session = session
        self.most = room
        self.homes: dict[str, Home] = {}
        self.withdrawn_homes: list[str] = []
        self.kept: set[str] = set()
        self.told: list[tuple[str, str]] = []
        self.replies: list[StepReply] = []
        self.failures: list[Exception] = []
        self.releases_at_once = True

    @property
    def room(self) -> int:
        return self.most - len(self.homes)

    def picked(self, home: Home, origins: list[tuple[str, list[TaskRow]]], note: str | None) -> None:
        self.homes[home.name] = home

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        self.told.append((home.name, origin))
        self.homes[home.name] = home

    def withdrawn(self, home: Home) -> None:
        self.withdrawn_homes.append(home.name)
        del self.homes[home.name]
        if self.releases_at_once:
            self.session.release(home)

    def keeps(self, home: Home) -> bool:
        return home.name in self.kept

    def stepped(self, partition: int, reply: StepReply) -> None:
        self.replies.append(reply)

    def failed(self, error: Exception) -> None:
        self.failures.append(error)

    def done(self, name: str, rest_s: float = 0.0) -> None:
        self.session.release(self.homes.pop(name), rest_s)


class Process:
    """A session with its pacer, its clock and its connection."""

    def __init__(
        self, answer: Callable[[Request], Request], *, partitions: int = 1, lease_s: float = 6.0
    ) -> None:
        self.clock = LoopClock()
        self.link = ScriptedLink(answer)
        self.events: list[Event] = []
        self.pacer = Pacer()
        self.session = Session(
            self.link,
            self.clock,
            "news",
            partitions=partitions,
            lease_s=lease_s,
            keyed=False,
            max_tries=3,
            max_done=1_000,
            tell=self.events.append,
        )
        self.session.tenant = self.pacer

    def crawl(self, *, room: int = 100) -> Frontier:
        frontier = Frontier(self.session, room=room)
        self.session.user = frontier
        self.session.begin()
        return frontier

    def all_leaves(self) -> list[str]:
        return [leave[0] for request in self.link.sent for leave in request.get("leaves", [])]


def fresh(name: str, fence: int = 1) -> list[object]:
    return [name, fence, -1, True, 0, ""]


_FENCES = count(1)


def gives(request: Request) -> Request:
    """The reply of a server where everything is free."""
    return {"taken": [fresh(name, next(_FENCES)) for name in request.get("takes", [])]}
