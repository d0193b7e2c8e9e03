"""Session: the homes of one process in a shared crawl, for its pacer and its frontier."""

import asyncio
import math
from typing import TYPE_CHECKING

from polite.errors import GateClosed, InvalidOption
from polite.events import StoreAway, StoreBack
from polite.log import fields, log
from polite.pacers.homes import Home
from polite.ports import Clock, Listener
from polite.stores.redis.homes import HeldHomes
from polite.stores.redis.partition import LAZY_S, URGENT_S, Partition
from polite.stores.redis.step import PATIENCE_S, CrawlSettings, StepReply, away

if TYPE_CHECKING:
    from polite.stores.redis.link import RedisLink


class Outage:
    """One StoreAway event for an outage that lasts, and one StoreBack when it is over."""

    def __init__(self, store: str, clock: Clock, tell: Listener) -> None:
        self._store = store
        self._clock = clock
        self._tell = tell
        self._since: float | None = None
        self._told = False

    def began(self, since: float) -> float:
        """Note that there was no reply since then (monotonic). Return for how long there has been none."""
        if self._since is None:
            self._since = since
        return self._clock.monotonic() - self._since

    def lasts(self, because: str) -> None:
        """Tell it, once."""
        if not self._told:
            self._told = True
            extra = fields("store_away", store=self._store)
            text = "%s does not respond: %s; the run goes on when it does"
            log.warning(text, self._store, because, extra=extra)
            self._tell(StoreAway(self._store, because))

    def ended(self) -> None:
        """Note that the store responds."""
        if self._since is None:
            return
        away_s = self._clock.monotonic() - self._since
        self._since = None
        if self._told:
            self._told = False
            extra = fields("store_back", store=self._store)
            log.warning("%s responds again, after %.0f s", self._store, away_s, extra=extra)
            self._tell(StoreBack(self._store, away_s))


# Wanted homes are asked for again so often.
_ASK_AGAIN_S = 0.2
# What a process without a frontier says of tasks: the frontiers of other processes drop and forget them.
_NO_LIMIT = 2**31
# Homes that the script lets one batch pick.
_MOST_PICKED = 50


class Session:
    """One process in one crawl.

    Attributes:
        name: The address of the store, without credentials.
        homes: The homes that it holds.
        closed: Whether this process puts no more tasks of its own.
    """

    def __init__(
        self, link: "RedisLink", clock: Clock, crawl: str, *, partitions: int, lease_s: float, tell: Listener
    ) -> None:
        self._clock = clock
        self._settings = CrawlSettings(lease_s, keyed=False, max_tries=_NO_LIMIT, max_done=_NO_LIMIT)
        self.closed: bool = False
        self.name: str = link.name
        self._partitions = tuple(
            Partition(link, clock, f"polite:{{{crawl}:{index}}}:", self._settings, self, index)
            for index in range(partitions)
        )
        self.homes: HeldHomes = HeldHomes(clock, self._settings.beat_s, self._partitions)
        # Partitions that got no room: they come before the others next time.
        self._skipped: dict[int, None] = {}
        self._outage = Outage(link.name, clock, tell)
        self._failure: Exception | None = None
        self._closing: asyncio.Future[list[None]] | None = None

    # What the frontier and the composition call

    def serve(self, *, keyed: bool, max_tries: int, max_done: int) -> None:
        """Set what concerns tasks, for the frontier that becomes the user.

        Raises:
            InvalidOption: The process has a frontier on this crawl already.
        """
        if self.homes.user is not None:
            raise InvalidOption(f"{self.name}: this gate has a frontier on this crawl already")
        settings = CrawlSettings(self._settings.lease_s, keyed, max_tries, max_done)
        for partition in self._partitions:
            partition.settings = settings

    def begin(self) -> None:
        """Send the first batches. May be called twice."""
        for partition in self._partitions:
            if partition.reply is None:
                partition.stir(0.0)

    def close_puts(self) -> None:
        """Tell the others that this process puts no more tasks of its own."""
        self.closed = True
        for partition in self._partitions:
            partition.stir(URGENT_S)

    async def close(self) -> None:
        """Leave all homes, and end the session. May be called twice.

        While the store does not respond, this is given up after 5 s. A cancellation is raised when it is done.
        """
        closing = self.end()
        cancelled: asyncio.CancelledError | None = None
        while not closing.done():
            try:
                await asyncio.wait([closing])
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def end(self) -> "asyncio.Future[list[None]]":
        """Begin what `close` does; the future, which is no task, is done at its end."""
        if self._closing is None:
            self._closing = asyncio.gather(*(partition.end() for partition in self._partitions))
            for partition in self._partitions:
                partition.wanted.fail(GateClosed("the gate is closed"))
            self.homes.close()
        return self._closing

    # What partitions call

    @property
    def alone(self) -> bool:
        """Whether this process has no frontier on the crawl."""
        return self.homes.user is None

    def room(self, partition: Partition) -> int:
        """Return how many homes the partition's next batch may pick."""
        if self.homes.user is None or self._closing is not None:
            return 0
        reply = partition.reply
        wanted = max(1, self.homes.user.room // len(self._partitions))
        if reply is not None:
            wanted = max(wanted, min(reply.inline, reply.fair - reply.held))
        ahead = list(self._skipped)
        if partition.index in ahead:
            ahead = ahead[: ahead.index(partition.index)]
        room = max(0, min(wanted, _MOST_PICKED, self._free - len(ahead)))
        if room or (reply is not None and not reply.inline):
            self._skipped.pop(partition.index, None)
        else:
            self._skipped[partition.index] = None
        return room

    def lose(self, homes: list[Home]) -> None:
        """Drop homes that are not ours any more."""
        for home in homes:
            self.homes.lose(home)

    def replied(self, partition: Partition, reply: StepReply) -> float:
        """Use a reply. Return the seconds after which the next batch should go at the latest."""
        if all(each.away_since is None for each in self._partitions):
            self._outage.ended()
        if self._closing is None:
            self._use(partition, reply)
        if self.homes.user is not None and not reply.lost:
            self.homes.user.stepped(partition.index, reply)
        return self._next_step_in(partition, reply)

    def unreached(self, partition: Partition, since: float, error: str) -> None:
        """Note that no batch had a reply since then (monotonic)."""
        now = self._clock.monotonic()
        was_held = partition.lease.until > -math.inf
        if self._outage.began(since) > self._settings.beat_s or (was_held and not partition.lease.good):
            self._outage.lasts(error)
        if now - since >= PATIENCE_S:
            partition.wanted.expire(now - PATIENCE_S, away(self.name, self._clock.wall(), now - since, error))

    def fail(self, error: Exception) -> None:
        """Stop all partitions: no batch will ever be applied again."""
        if self._failure is not None:
            return
        self._failure = error
        for partition in self._partitions:
            partition.stop(error)
        for partition in self._partitions:
            self.lose(list(partition.homes.values()))
        if self.homes.user is not None:
            self.homes.user.failed(error)

    def _use(self, partition: Partition, reply: StepReply) -> None:
        for taken in reply.taken:
            self.homes.take_over(partition, taken)
        for taken, origins in reply.picked:
            self.homes.pick(partition, taken, origins)
        for name, origin, rows in reply.news:
            self.homes.bring_news(name, origin, rows)
        for name in partition.wanted:
            home = self.homes.held(name)
            if home is not None:
                partition.wanted.resolve(home)
        self.homes.recall(reply.recalls)
        self.homes.share_out(partition, reply)
        self.homes.sweep()

    @property
    def _free(self) -> int:
        """How many homes more can be picked, besides those that batches under way may pick."""
        if self.homes.user is None or self._closing is not None:
            return 0
        return max(0, self.homes.user.room - sum(each.picking for each in self._partitions))

    def _next_step_in(self, partition: Partition, reply: StepReply) -> float:
        within_s = _ASK_AGAIN_S if partition.wanted else math.inf
        if reply.next_in == 0:
            # The script stopped at one of its limits.
            within_s = min(within_s, URGENT_S)
        elif reply.next_in is not None:
            within_s = min(within_s, max(reply.next_in / 1e6, LAZY_S))
        if self._free:
            if reply.picked:
                within_s = min(within_s, URGENT_S)
            elif reply.inline and reply.held < reply.fair and not reply.quiet:
                # Other partitions took the room.
                within_s = min(within_s, _ASK_AGAIN_S)
            elif len(partition.homes) < reply.fair:
                within_s = min(within_s, self._settings.beat_s / 3)
        return within_s
