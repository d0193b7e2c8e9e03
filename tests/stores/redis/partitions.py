"""A partition on a scripted connection, with an owner that records what it calls."""

import math

from polite.stores.redis.changes import Changes
from polite.stores.redis.crawl_settings import CrawlSettings
from polite.stores.redis.home import Home
from polite.stores.redis.partition import Partition
from polite.stores.redis.step_reply import StepReply
from polite.testing import LoopClock
from tests.stores.redis.scripted_link import ScriptedLink

SETTINGS = CrawlSettings(lease_s=6.0, keyed=False, max_tries=3, max_done=1_000)
# The lease but for its margin: 0.2 s and 1 %.
HELD_S = 6.0 - 0.26


class Owner:
    """Records what a partition calls."""

    def __init__(self, *, alone: bool = False) -> None:
        self.alone = alone
        self.closed = False
        self.lost: list[Home] = []
        self.failures: list[Exception] = []
        self.errors: list[str] = []
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

    def unreached(self, partition: Partition, since: float, error: str) -> None:
        self.errors.append(error)

    def fail(self, error: Exception) -> None:
        self.failures.append(error)
        assert self.partition is not None
        self.partition.stop(error)


def on(link: ScriptedLink, owner: Owner | None = None, clock: LoopClock | None = None) -> Partition:
    owner = owner or Owner()
    owner.partition = Partition(link, clock or LoopClock(), "polite:{news:0}:", SETTINGS, owner)
    return owner.partition


def hold(partition: Partition, name: str, fence: int = 1) -> Home:
    home = partition.homes[name] = Home(name, fence, partition.tenure, LoopClock())
    return home


async def submit(partition: Partition, *, lazy: bool = False, **lists: list[object]) -> StepReply:
    return await partition.submit(Changes(**lists), lazy=lazy)  # type: ignore[arg-type]
