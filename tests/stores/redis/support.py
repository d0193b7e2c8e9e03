"""A connection whose replies a test writes, and whose messages it delays or loses; and a partition or a session on it."""

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from polite.events import Event
from polite.pacers.homes import Home, TakenHome
from polite.stores.redis.changes import Changes, Ended, PutEntry
from polite.stores.redis.partition import Partition
from polite.stores.redis.session import Session
from polite.stores.redis.step import CrawlSettings, StepReply, TaskRow, Unreached
from polite.testing import LoopClock

Request = dict[str, Any]
HOST, ORIGIN = "example.com", "https://example.com"
SETTINGS = CrawlSettings(lease_s=6.0, keyed=False, max_tries=3, max_done=1_000)
# The lease but for its margin: 0.2 s and 1 %.
HELD_S = 6.0 - 0.26


@dataclass(frozen=True)
class Fault:
    """What happens to one call: it arrives late, not at all, or its reply is late or lost."""

    before_s: float = 0.0
    after_s: float = 0.0
    request_lost: bool = False
    reply_lost: bool = False


class ScriptedLink:
    """Calls `answer` with each request that arrives.

    Attributes:
        says: What all replies say, beside what `answer` returns.
        requests: What was sent, with the loop's time.
        faults: Those of the next calls; after them calls take `delay_s`.
        down: No call arrives.
        down_for: No call for these partitions arrives.
    """

    name = "redis://example.com:6379/0"

    def __init__(self, answer=None, *, delay_s=0.001, **says):
        self._answer = answer or (lambda _: {})
        self.says: Request = says
        self.requests: list[tuple[float, Request]] = []
        self.faults: deque[Fault] = deque()
        self.delay_s, self.down = delay_s, False
        self.down_for: set[str] = set()
        self.under_way = self.most_under_way = 0

    @property
    def sent(self) -> list[Request]:
        return [request for _, request in self.requests]

    async def step(self, prefix: str, request: str) -> str:
        given = json.loads(request)
        self.requests.append((asyncio.get_running_loop().time(), given))
        fault = self.faults.popleft() if self.faults else Fault(after_s=self.delay_s)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(fault.before_s)
            if self.down or prefix in self.down_for or fault.request_lost:
                await asyncio.sleep(0.01)
                raise Unreached("connection refused")
            reply = json.dumps(_standard_reply(given) | self.says | self._answer(given))
            await asyncio.sleep(fault.after_s)
            if fault.reply_lost:
                raise Unreached("connection reset")
            return reply
        finally:
            self.under_way -= 1


def _standard_reply(request: Request) -> Request:
    return {
        "born": request.get("born", request["newborn"]),
        "epoch": 1,
        "puts": list(range(1, len(request.get("puts", [])) + 1)),
        "met": [False for _ in request.get("met", [])],
        "loads": [[] for _ in request.get("loads", [])],
        "next_in": -1,
    }


def put(number: int, *, again: bool = False, ready_in: int | None = None) -> PutEntry:
    return PutEntry(HOST, ORIGIN, f"digest-{number}", f'["/{number}"]', None, again, ready_in)


def ended(number: int) -> Ended:
    return Ended(HOST, ORIGIN, f"digest-{number}", "done")


def digests(entries: list[list[Any]]) -> list[int]:
    return [int(entry[2].removeprefix("digest-")) for entry in entries]


class Owner:
    closed = False

    def __init__(self, *, alone: bool = False) -> None:
        self.alone = alone
        self.homes = self
        self.lost: list[Home] = []
        self.failures: list[Exception] = []
        self.replies: list[StepReply] = []
        self.partition: Partition | None = None

    def room(self, partition: Partition) -> int:
        return 5

    def may_take(self, name: str) -> bool:
        return True

    def lose(self, homes: list[Home]) -> None:
        for home in homes:
            home.over = True
            self.lost.append(home)
            assert self.partition is not None
            del self.partition.homes[home.name]

    def replied(self, partition: Partition, reply: StepReply) -> float:
        self.replies.append(reply)
        return math.inf

    def unreached(self, partition: Partition, since: float, error: str) -> None: ...

    def fail(self, error: Exception) -> None:
        self.failures.append(error)
        self.partition.stop(error)


def on(link: ScriptedLink, owner: Owner | None = None, clock: LoopClock | None = None) -> Partition:
    owner = owner or Owner()
    owner.partition = Partition(link, clock or LoopClock(), "polite:{news:0}:", SETTINGS, owner)
    return owner.partition


def hold(partition: Partition, name: str = HOST, fence: int = 1) -> Home:
    home = partition.homes[name] = Home(name, fence, partition.lease, 0.0)
    return home


async def submit(partition: Partition, **lists: list[Any]) -> StepReply:
    return await partition.submit(Changes(**lists))


class Pacer:
    def __init__(self) -> None:
        self.taken: list[TakenHome] = []
        self.handed: list[str] = []
        self.waiting: set[str] = set()
        self.rest_s = 0.0

    def take_over(self, home: Home, taken: TakenHome) -> None:
        self.taken.append(taken)

    def hand_over(self, home: str) -> tuple[float, str | None]:
        self.handed.append(home)
        return self.rest_s, f"state of {home}"

    def waits(self, home: str) -> bool:
        return home in self.waiting


class Frontier:
    """A user that holds tasks of each home until the test lets it release them."""

    def __init__(self, session: Session, room: int) -> None:
        self.session, self.most = session, room
        self.homes: dict[str, Home] = {}
        self.withdrawn_homes: list[str] = []
        self.kept: set[str] = set()
        self.releases_at_once = True
        self.told: list[tuple[str, str]] = []
        self.failures: list[Exception] = []

    @property
    def room(self) -> int:
        return self.most - len(self.homes)

    def picked(self, home: Home, origins: list[tuple[str, list[TaskRow]]]) -> None:
        self.homes[home.name] = home

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        self.told.append((home.name, origin))
        self.homes[home.name] = home

    def withdrawn(self, home: Home) -> None:
        self.withdrawn_homes.append(home.name)
        del self.homes[home.name]
        if self.releases_at_once:
            self.session.homes.release(home)

    def keeps(self, home: Home) -> bool:
        return home.name in self.kept

    def stepped(self, partition: int, reply: StepReply) -> None: ...

    def failed(self, error: Exception) -> None:
        self.failures.append(error)

    def done(self, name: str, rest_s: float = 0.0) -> None:
        self.session.homes.release(self.homes.pop(name), rest_s)


class Process:
    def __init__(self, answer=None, *, partitions=1, **says):
        self.clock = LoopClock()
        self.link = ScriptedLink(answer or gives, **says)  # type: ignore[arg-type]
        self.events: list[Event] = []
        self.pacer = Pacer()
        self.session = Session(
            self.link,
            self.clock,
            "news",
            partitions=partitions,
            lease_s=SETTINGS.lease_s,
            tell=self.events.append,
        )
        self.homes = self.session.homes
        self.homes.tenant = self.pacer

    def crawl(self, *, room: int = 100) -> Frontier:
        frontier = Frontier(self.session, room)
        self.homes.user = frontier
        self.session.begin()
        return frontier

    @property
    def left(self) -> list[list[Any]]:
        return [leave for request in self.link.sent for leave in request.get("leaves", [])]

    @property
    def left_names(self) -> list[str]:
        return [leave[0] for leave in self.left]


def fresh(name: str, fence: int = 1) -> list[object]:
    return [name, fence, -1, True, 0, ""]


_FENCES = count(1)


def gives(request: Request) -> Request:
    return {"taken": [fresh(name, next(_FENCES)) for name in request.get("takes", [])]}


def picks(*names: str) -> Callable[[Request], Request]:
    return lambda request: {"picked": [[*fresh(name), []] for name in names] if request["first"] else []}
