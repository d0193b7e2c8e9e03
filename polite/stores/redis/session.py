"""Session: the homes of one process in a shared crawl, for its pacer and its frontier."""

import asyncio
import hashlib
import logging
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from polite.errors import GateClosed, InvalidOption, StoreFailed
from polite.events import StoreAway, StoreBack
from polite.log import fields
from polite.pacers.homes import Home as AnyHome
from polite.pacers.homes import Tenant
from polite.ports import Clock, Listener
from polite.stores.redis.changes import Changes, Hold
from polite.stores.redis.crawl_settings import CrawlSettings
from polite.stores.redis.held_homes import HeldHomes
from polite.stores.redis.home import Home
from polite.stores.redis.home_user import HomeUser
from polite.stores.redis.partition import LAZY_S, URGENT_S, Partition
from polite.stores.redis.patience import PATIENCE_S
from polite.stores.redis.step import Link, microseconds
from polite.stores.redis.step_reply import StepReply, TaskRow


class RoomShares:
    """Shares out the homes that a process can take. A partition that got none comes before the others next time."""

    def __init__(self) -> None:
        self._skipped: dict[int, None] = {}

    def room(self, partition: int, free: int, wanted: int, *, may_have: bool) -> int:
        """Return how many homes the partition's next batch may pick.

        Args:
            partition: Its index.
            free: How many homes can be taken, besides those that batches under way may pick.
            wanted: How many it would pick at most.
            may_have: Whether homes wait in its line, as far as is known.
        """
        ahead = list(self._skipped)
        if partition in self._skipped:
            ahead = ahead[: ahead.index(partition)]
        room = max(0, min(wanted, free - len(ahead)))
        if room or not may_have:
            self._skipped.pop(partition, None)
        else:
            self._skipped[partition] = None
        return room


log: logging.Logger = logging.getLogger("polite")


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
            log.warning(
                "%s does not respond: %s; the run goes on when it does", self._store, because, extra=extra
            )
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

    def error(self, seconds: float, because: str) -> StoreFailed:
        """Return the error of a call that has waited for too long."""
        since = datetime.fromtimestamp(self._clock.wall() - seconds, UTC).isoformat(
            sep=" ", timespec="seconds"
        )
        return StoreFailed(
            f"{self._store} has not responded since {since} ({seconds:.0f} s); the last error: {because}",
            may_pass=True,
        )


# Wanted homes are asked for again so often.
_ASK_AGAIN_S = 0.2
# What a process without a frontier says of tasks: the frontiers of other processes drop and forget them.
_NO_LIMIT = 2**31
# Homes that the script lets one batch pick.
_MOST_PICKED = 50


class Remaining(NamedTuple):
    """What a crawl has left.

    Attributes:
        empty: No task waits or is in flight anywhere.
        all_closed: No process puts tasks of its own any more.
    """

    empty: bool
    all_closed: bool


class Session:
    """The homes of one process in one crawl (homes.Homes), and its partitions.

    Attributes:
        name: The address of the store, without credentials.
        settings: What all processes agree on.
        partitions: The crawl's partitions.
        closed: Whether this process puts no more tasks of its own.
        entered, left: As in homes.Homes.
    """

    def __init__(
        self,
        link: Link,
        clock: Clock,
        crawl: str,
        *,
        partitions: int,
        lease_s: float,
        tell: Listener,
        keyed: bool = False,
        max_tries: int = _NO_LIMIT,
        max_done: int = _NO_LIMIT,
    ) -> None:
        self._clock = clock
        self.settings: CrawlSettings = CrawlSettings(lease_s, keyed, max_tries, max_done)
        self.closed: bool = False
        self.name: str = link.name
        self.partitions: tuple[Partition, ...] = tuple(
            Partition(link, clock, f"polite:{{{crawl}:{index}}}:", self.settings, self, index)
            for index in range(partitions)
        )
        self._homes = HeldHomes(clock, self.settings.beat_s, self.partition)
        # Hot path: bound here, since a frame of their own would be a part of what a permit costs.
        self.entered: Callable[[AnyHome], None] = self._homes.entered
        self.left: Callable[[AnyHome], None] = self._homes.left
        self._shares = RoomShares()
        self._outage = Outage(link.name, clock, tell)
        self._failure: Exception | None = None
        self._closing: asyncio.Future[None] | None = None

    @property
    def tenant(self) -> Tenant:
        """The pacer. It is set before the first home is taken."""
        return self._homes.tenant

    @tenant.setter
    def tenant(self, tenant: Tenant) -> None:
        self._homes.tenant = tenant

    @property
    def user(self) -> HomeUser | None:
        """The frontier, if this process has one."""
        return self._homes.user

    @user.setter
    def user(self, user: HomeUser | None) -> None:
        self._homes.user = user

    # What the pacer calls

    @property
    def live(self) -> int:
        """How many processes share the crawl, this one included."""
        return max(1 if each.reply is None else each.reply.live for each in self.partitions)

    def held(self, name: str) -> Home | None:
        """Return the home if it may give a turn now: it is good, and not closing."""
        return self._homes.held(name)

    async def take(self, name: str) -> Home:
        """Wait until the home is held."""
        home = self.held(name)
        if home is not None:
            return home
        if self._failure is not None:
            raise self._failure
        if self._closing is not None:
            raise GateClosed("the gate is closed")
        partition = self.partition(name)
        partition.stir(URGENT_S)
        return await partition.wanted.wait(name, self._clock.monotonic())

    def rests(self, home: AnyHome, seconds: float) -> None:
        """Write a long delay of the home through."""
        if self._homes.has(home):
            hold = Hold(home.name, home.fence, microseconds(seconds), None)
            self.partition(home.name).submit(Changes(holds=[hold]), lazy=True)

    # What the frontier and the composition call

    def serve(self, *, keyed: bool, max_tries: int, max_done: int) -> None:
        """Set what concerns tasks, for the frontier that becomes the user.

        Raises:
            InvalidOption: The process has a frontier on this crawl already.
        """
        if self.user is not None:
            raise InvalidOption(f"{self.name}: this gate has a frontier on this crawl already")
        self.settings = CrawlSettings(self.settings.lease_s, keyed, max_tries, max_done)
        for partition in self.partitions:
            partition.settings = self.settings

    def begin(self) -> None:
        """Send the first batches. May be called twice."""
        for partition in self.partitions:
            if partition.reply is None:
                partition.stir(0.0)

    def partition(self, home: str) -> Partition:
        """Return the partition that the home belongs to."""
        if len(self.partitions) == 1:
            return self.partitions[0]
        digest = hashlib.blake2b(home.encode(), digest_size=8).digest()
        return self.partitions[int.from_bytes(digest, "big") % len(self.partitions)]

    def release(self, home: Home, rest_s: float = 0.0) -> None:
        """Give back a home that the frontier has nothing of, after `send` of all ends. It leaves unless the pacer needs it.

        Args:
            home: The home.
            rest_s: The least time until it may be requested again.
        """
        self._homes.release(home, rest_s)

    def recall(self, home: Home) -> None:
        """Have a home leave soon, as one that others want: its tasks are theirs, although requests may go on waiting here."""
        self._homes.recall([home.name])

    def close_puts(self) -> None:
        """Tell the others that this process puts no more tasks of its own."""
        self.closed = True
        for partition in self.partitions:
            partition.stir(URGENT_S)

    async def over(self) -> Remaining:
        """Return what the crawl has left. It is empty if nothing waits in two readings, and nothing was put between them."""
        first = await self._read()
        second = None if first is None else await self._read()
        if first is None or second is None or second[0] != first[0]:
            return Remaining(empty=False, all_closed=False)
        return Remaining(empty=True, all_closed=first[1] and second[1])

    async def _read(self) -> tuple[int, bool] | None:
        """Return how many puts there have been, and whether all processes are closed; None if something waits."""
        replies = await asyncio.gather(*(each.submit(Changes()) for each in self.partitions))
        if any(reply.lost or reply.waiting or reply.quiet for reply in replies):
            return None
        return sum(reply.nputs for reply in replies), all(reply.all_closed for reply in replies)

    def bring_news(self, home: str, origin: str, rows: list[TaskRow]) -> None:
        """Give the frontier tasks of a home that it has asked for, if the home is held and not closing."""
        self._homes.bring_news(home, origin, rows)

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

    def end(self) -> "asyncio.Future[None]":
        """Begin what `close` does; the future, which is no task, is done at its end."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_future()
            self._end(self._closing)
        return self._closing

    def _end(self, closing: "asyncio.Future[None]") -> None:
        ends = {partition.end() for partition in self.partitions}

        def ended(end: "asyncio.Future[None]") -> None:
            ends.discard(end)
            if not ends:
                closing.set_result(None)

        for end in list(ends):
            end.add_done_callback(ended)
        for partition in self.partitions:
            partition.wanted.fail(GateClosed("the gate is closed"))
        self._homes.close()

    # What partitions call

    @property
    def alone(self) -> bool:
        """Whether this process has no frontier on the crawl."""
        return self.user is None

    def room(self, partition: Partition) -> int:
        """Return how many homes the partition's next batch may pick."""
        if self.user is None or self._closing is not None:
            return 0
        reply = partition.reply
        wanted = max(1, self.user.room // len(self.partitions))
        if reply is not None:
            wanted = max(wanted, min(reply.inline, reply.fair - reply.held))
        may_have = reply is None or reply.inline > 0
        return self._shares.room(partition.index, self._free, min(wanted, _MOST_PICKED), may_have=may_have)

    def may_take(self, name: str) -> bool:
        """Return whether a wanted home may be asked for now."""
        return self._homes.may_take(name)

    def lose(self, homes: list[Home]) -> None:
        """Drop homes that are not ours any more."""
        for home in homes:
            self._homes.lose(home)

    def replied(self, partition: Partition, reply: StepReply) -> float:
        """Use a reply. Return the seconds after which the next batch should go at the latest."""
        if all(each.away_since is None for each in self.partitions):
            self._outage.ended()
        if self._closing is None:
            self._use(partition, reply)
        if self.user is not None and not reply.lost:
            self.user.stepped(partition.index, reply)
        return self._next_step_in(partition, reply)

    def unreached(self, partition: Partition, since: float, error: str) -> None:
        """Note that no batch had a reply since then (monotonic)."""
        now = self._clock.monotonic()
        was_held = partition.tenure.until > -math.inf
        if self._outage.began(since) > self.settings.beat_s or (was_held and not partition.tenure.good):
            self._outage.lasts(error)
        if now - since >= PATIENCE_S:
            partition.wanted.expire(now - PATIENCE_S, self._outage.error(now - since, error))

    def fail(self, error: Exception) -> None:
        """Stop all partitions: no batch will ever be applied again."""
        if self._failure is not None:
            return
        self._failure = error
        for partition in self.partitions:
            partition.stop(error)
        for partition in self.partitions:
            self.lose(list(partition.homes.values()))
        if self.user is not None:
            self.user.failed(error)

    def _use(self, partition: Partition, reply: StepReply) -> None:
        for taken in reply.taken:
            self._homes.take_over(partition, taken)
        for taken, origins in reply.picked:
            self._homes.pick(partition, taken, origins)
        for name, origin, rows in reply.news:
            self._homes.bring_news(name, origin, rows)
        for name in partition.wanted:
            home = self.held(name)
            if home is not None:
                partition.wanted.resolve(home)
        self._homes.recall(reply.recalls)
        self._homes.share_out(partition, reply)
        self._homes.sweep()

    @property
    def _free(self) -> int:
        """How many homes more can be picked, besides those that batches under way may pick."""
        if self.user is None or self._closing is not None:
            return 0
        return max(0, self.user.room - sum(each.picking for each in self.partitions))

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
                within_s = min(within_s, self.settings.beat_s / 3)
        return within_s
