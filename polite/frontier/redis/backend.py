"""The backend of a frontier that many processes share: each batch goes to the partitions of its homes.

It knows what the crawl has left (CrawlTotals), and whether this process takes or leaves homes (HomeDemand).
"""

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from functools import partial

from polite.errors import StoreFailed
from polite.frontier.durable.active_origins import TASKS_PER_ORIGIN
from polite.frontier.durable.backend import (
    Activation,
    Batch,
    BatchResult,
    Found,
    GivenUp,
    News,
    Place,
    Row,
    StoreSummary,
    Totals,
)
from polite.frontier.progress import Counts, SharedCrawl
from polite.frontier.redis.batch import BatchChanges, SplitBatch, row_of
from polite.frontier.task_store import TaskDraft
from polite.orders import Order
from polite.origin import Origin, Target
from polite.pacers.homes import Home
from polite.ports import Clock
from polite.stores.redis.changes import Changes, Load
from polite.stores.redis.partition import URGENT_S
from polite.stores.redis.session import Session
from polite.stores.redis.step import StepReply, TaskRow

# While this process has clearly too few homes, or none, it looks for others this often (seconds).
_LOOK_S = 0.5
# How long `close` waits for a server that does not respond, in a session that goes on (seconds).
_CLOSE_S = 5.0
# Before it says that nothing is left, it looks at each partition once more, after so long (seconds).
_CONFIRM_S = 0.2


class CrawlTotals:
    """The latest reply of each partition.

    One look at each partition does not tell that nothing is left: the page of a task that ends in one partition may have put a
    task into another, after that was asked. Two looks do, if each partition was empty at both and there was no put between them.
    """

    def __init__(self, partitions: int) -> None:
        self._latest: list[StepReply | None] = [None] * partitions
        self._replies = [0] * partitions
        # When each partition first said that it has no task: how many puts there had ever been, and replies of each.
        self._empty: tuple[int, list[int]] | None = None
        self.confirmed: bool = False

    def add(self, partition: int, reply: StepReply) -> None:
        """Take in a reply, and look whether two readings agree."""
        self._latest[partition] = reply
        self._replies[partition] += 1
        replies = self._known
        if replies is None or any(each.waiting or each.quiet for each in replies):
            self._empty, self.confirmed = None, False
            return
        puts = sum(each.nputs for each in replies)
        if self._empty is None or self._empty[0] != puts:
            self._empty, self.confirmed = (puts, list(self._replies)), False
        elif all(now > then for now, then in zip(self._replies, self._empty[1], strict=True)):
            self.confirmed = True

    def doubt(self) -> None:
        """Forget that nothing was left: both looks are to be taken anew."""
        self._empty, self.confirmed = None, False

    @property
    def to_confirm(self) -> bool:
        """Whether nothing seems to be left, and each partition should be asked once more."""
        return self._empty is not None and not self.confirmed

    @property
    def all_closed(self) -> bool:
        """Whether, at the latest replies, no process put any more."""
        replies = self._known
        return replies is not None and all(each.all_closed for each in replies)

    @property
    def left(self) -> int:
        """How many tasks are left, as far as is known."""
        return sum(each.waiting for each in self._latest if each is not None)

    @property
    def origins_waiting(self) -> bool:
        """Whether homes wait that this process should take: its share is not full."""
        return any(each.inline and each.held < each.fair and not each.quiet for each in self._replied)

    @property
    def live(self) -> int:
        """How many processes share the crawl, as far as is known; 0 before the first reply."""
        return max((each.live for each in self._replied), default=0)

    @property
    def few(self) -> bool:
        """Whether this process has clearly fewer homes than others."""
        return any(each.live > 1 and each.held < each.fair - 1 for each in self._replied)

    @property
    def totals(self) -> Totals | None:
        """The sums, once each partition has replied."""
        replies = self._known
        if replies is None:
            return None
        ended = zip(*((each.done, each.refused, each.dropped) for each in replies), strict=True)
        return Totals(self.left, Counts(*map(sum, ended)))

    @property
    def _replied(self) -> list[StepReply]:
        return [each for each in self._latest if each is not None]

    @property
    def _known(self) -> list[StepReply] | None:
        replied = self._replied
        return replied if len(replied) == len(self._latest) else None


# How long homes are kept while no worker waits and no task is in flight (seconds).
_WITHOUT_WORKERS_S = 10.0


class HomeDemand:
    """What workers and the crawl say of it. A process without workers leaves homes to others.

    Args:
        clock: The clock.
        totals: What the partitions count.
        busy: Returns whether a worker waits, or a task is in flight.
    """

    def __init__(self, clock: Clock, totals: CrawlTotals, busy: Callable[[], bool]) -> None:
        self._clock = clock
        self._totals = totals
        self._busy = busy
        self._busy_at = clock.monotonic()
        self._used = False  # a worker or `join` has come
        self._untaken_since: float | None = None  # since when homes wait that no process takes (monotonic)
        self._declined = False  # no home was picked, since no worker was there

    def awaited(self) -> bool:
        """A worker waits for a permit, or `join` for the end of all tasks. Return whether homes were declined before."""
        self._used = True
        return self._take_declined()

    def accepts(self) -> bool:
        """Return whether homes may be picked now. One that only puts declines them, even when alone.

        The network of a producer may reach no site: what it finds of robots.txt would be told to all.
        """
        accepts = self._used if self._alone else self._busy()
        self._declined = self._declined or not accepts
        return accepts

    def revived(self) -> bool:
        """Return whether homes that were declined should be picked now: no other process takes them."""
        return self._used and self._alone and self._take_declined()

    def look_for_untaken(self, *, holds_some: bool) -> None:
        """Note whether homes wait of which this process holds none."""
        if not self._totals.origins_waiting or holds_some:
            if self._untaken:
                # It keeps them for a while, though no worker comes.
                self._busy_at = self._clock.monotonic()
            self._untaken_since = None
        elif self._untaken_since is None:
            self._untaken_since = self._clock.monotonic()

    def is_idle(self) -> bool:
        """Return whether no worker has come for long, so that other processes should have the homes."""
        now = self._clock.monotonic()
        if self._busy() or self._totals.live == 1:
            self._busy_at = now
        return now - self._busy_at > _WITHOUT_WORKERS_S

    @property
    def _alone(self) -> bool:
        return self._totals.live == 1 or self._untaken

    @property
    def _untaken(self) -> bool:
        """Whether homes have waited for so long that no process seems to have workers. If all only join, they look themselves."""
        since = self._untaken_since
        return since is not None and self._clock.monotonic() - since > _WITHOUT_WORKERS_S

    def _take_declined(self) -> bool:
        declined, self._declined = self._declined, False
        return declined


class RedisBackend:
    """A durable.backend.Backend on a session, and the session's HomeUser.

    Args:
        home_of: Returns the name of a URL's home.
        key: Returns the scheduler's key of a put; None if tasks go in the order of puts.
        busy: Returns whether a worker waits, or a task is in flight.
        is_fetching: Returns whether the robots.txt of an origin is being fetched.
    """

    # A batch of the server must stay short: 16 MB, as a file may have, would hold up all processes.
    payload_limit = 256 * 1024

    def __init__(
        self,
        session: Session,
        clock: Clock,
        home_of: Callable[[Target], str],
        key: Callable[[TaskDraft], float] | None,
        *,
        busy: Callable[[], bool],
        is_fetching: Callable[[Origin], bool],
    ) -> None:
        self._session = session
        self._clock = clock
        self._home_of = home_of
        self._is_fetching = is_fetching
        self._held = session.homes
        self._totals = CrawlTotals(len(self._held.partitions))
        self._demand = HomeDemand(clock, self._totals, busy)
        self._tell: Callable[[News], None] = lambda _: None
        self._news = News()
        self._telling = False
        self._places: Callable[[], int] = lambda: 0
        self._changes = BatchChanges(session.homes, home_of, key)
        self._under_way: set[asyncio.Future[BatchResult]] = set()
        self._closed = False

    @property
    def name(self) -> str:
        return self._session.name

    @property
    def shared(self) -> SharedCrawl:
        return self

    def open(
        self, max_tries: int, tell: Callable[[News], None], places: Callable[[], int]
    ) -> "asyncio.Future[StoreSummary]":
        self._tell, self._places = tell, places
        self._held.user = self
        self._session.closed = False
        # It need not put anything to get some homes.
        self._ask_all(0.0)
        opened: asyncio.Future[StoreSummary] = asyncio.get_running_loop().create_future()
        # The replies of the partitions tell what waits.
        opened.set_result(StoreSummary(0, 0.0, Totals(0, Counts()), [], {}))
        return opened

    def require(self, target: Target) -> None:
        self._home_of(target)

    def knows_first(self, target: Target) -> bool:
        home = self._held.used.get(self._home_of(target))
        return home is not None and home.suspects > 0

    def is_gone(self, number: int) -> bool:
        return self._changes.gone.has_number(number)

    def find(self, order: Order, place: Place | None) -> "asyncio.Future[Found]":
        nothing: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        nothing.set_result(Found([], None, math.inf))
        return nothing

    def put_no_more(self) -> None:
        self._session.close_puts()

    def close(self) -> "asyncio.Future[None]":
        self._closed = True
        # The gate goes on with the session.
        self._held.user = None
        for home in list(self._held.used.values()):
            self._changes.deactivate(home)
            # The home stays with the gate, where nothing would end these.
            home.in_flight.clear()
            self._held.release(home)
            self._held.recall([home.name])
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        until = self._clock.monotonic() + _CLOSE_S

        def end(_: object = None) -> None:
            """End it when all batches are written, or after a while."""
            if closed.done():
                return
            if not self._under_way:
                closed.set_result(None)
            elif self._clock.monotonic() >= until:
                late = f"{self.name} did not respond for {_CLOSE_S:g} s while the frontier was closed"
                closed.set_exception(StoreFailed(late))

        timer = self._clock.call_at(until, end)
        closed.add_done_callback(lambda _: timer.cancel())
        for batch in self._under_way:
            batch.add_done_callback(end)
        end()
        return closed

    # Batches.

    def apply(self, batch: Batch) -> "asyncio.Future[BatchResult]":
        parts = self._changes.split(batch)
        result: asyncio.Future[BatchResult] = asyncio.get_running_loop().create_future()
        self._under_way.add(result)
        parts.send().add_done_callback(lambda sent: self._replied(batch, parts, sent, result))
        result.add_done_callback(self._under_way.discard)
        # After what was said of their tasks and origins.
        self._release_unneeded()
        return result

    def _replied(
        self,
        batch: Batch,
        parts: SplitBatch,
        sent: "asyncio.Future[list[StepReply]]",
        result: "asyncio.Future[BatchResult]",
    ) -> None:
        error = sent.exception()
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
            return
        self._load_own(batch)
        self._changes.written(parts)
        count = len(self._held.partitions)
        numbers = [
            None
            if put is None or put.answer is None
            else put.answer * count + self._held.partition(put.home).index
            for put in parts.puts
        ]
        loads = [[] if load is None else self._rows(load.home, load.answer) for load in parts.loads]
        met = [lookup.answer for lookup in parts.met]
        result.set_result(BatchResult(numbers, met, loads, News()))

    def _load_own(self, batch: Batch) -> None:
        """Ask for tasks that wait now in origins of held homes that are not active. The server tells only other owners."""
        targets = [put.target for put in batch.puts if put.ready_at is None]
        targets += [task.target for task, ready_at in batch.requeued if ready_at is None]
        targets += [task.target for task, in_flight in batch.marks.values() if not in_flight]
        for origin in dict.fromkeys(target.origin for target in targets):
            text, home = origin.text, self._held.held(self._home_of(Target(origin, "/")))
            if home is None or text in home.origins:
                continue
            load = Load(home.name, home.fence, text, TASKS_PER_ORIGIN)
            loaded = self._held.partition(home.name).submit(Changes(loads=[load]))
            loaded.add_done_callback(partial(self._loaded_own, load))

    def _loaded_own(self, load: Load, reply: "asyncio.Future[StepReply]") -> None:
        if not reply.cancelled() and reply.exception() is None and load.answer:
            self._held.bring_news(load.home, load.origin, load.answer)

    # Homes that are not needed any more.

    def _release_unneeded(self) -> None:
        for home in list(self._held.used.values()):
            if not home.origins and not home.in_flight:
                home.note = json.dumps(home.failures) if home.failures else None
                home.failures.clear()
                self._held.release(home)

    # The session's HomeUser.

    @property
    def room(self) -> int:
        """How many homes it can take now."""
        return self._free if not self._closed and self._demand.accepts() else 0

    @property
    def _free(self) -> int:
        return max(0, self._places() - len(self._news.activated))

    @property
    def _crowded(self) -> bool:
        """Whether homes wait for which there is no place here. For others the session asks by itself."""
        return self._totals.origins_waiting and not self._free

    def awaited(self) -> None:
        """A worker waits for a permit, or `join` for the end of all tasks: from now on homes are picked."""
        if self._demand.awaited():
            self._ask_all(URGENT_S)

    def look_again(self) -> None:
        """Ask all partitions anew whether anything is left."""
        self._totals.doubt()
        self._ask_all(URGENT_S)

    def _ask_all(self, within_s: float) -> None:
        for partition in self._held.partitions:
            partition.stir(within_s)

    def _leave_if_idle(self) -> None:
        """Leave all homes if no worker has come for long: other processes may have some."""
        if not self._demand.is_idle():
            return
        for home in list(self._held.used.values()):
            if not self.keeps(home):
                self.withdrawn(home)
                self._held.recall([home.name])

    def picked(self, home: Home, origins: Sequence[tuple[str, list[TaskRow]]]) -> None:
        """A home was taken from the line, with the first tasks of its origins."""
        home.failures = {} if home.note is None else json.loads(home.note)
        for text, rows in origins:
            self._activate(home, text, rows)
        self._tell_soon()

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        """Tasks were put for an origin of a held home, or became ready."""
        active = home.origins.get(origin)
        if active is None:
            self._activate(home, origin, rows)
        else:
            self._news.loaded.append((active, self._rows(home.name, rows)))
        self._tell_soon()

    def _activate(self, home: Home, text: str, rows: list[TaskRow]) -> None:
        found = self._rows(home.name, rows)
        if found:
            number = self._changes.activate(home, text)
            self._news.activated.append(Activation(number, text, home.failures.get(text, 0), None, found))

    def keeps(self, home: Home) -> bool:
        """Whether the home should not be given away now."""
        return any(self._is_fetching(Origin.of(text)) for text in home.origins)

    def withdrawn(self, home: Home) -> None:
        """The home was lost; or it is to be left, once the last task in flight has ended: its tasks are another process's."""
        numbers = self._changes.deactivate(home)
        self._news.withdrawn += numbers
        self._news.activated = [each for each in self._news.activated if each.origin_id not in numbers]
        self._news.loaded = [each for each in self._news.loaded if each[0] not in numbers]
        self._tell_soon()

    def failed(self, error: Exception) -> None:
        """No batch will be applied any more."""
        self._news.failure = error
        self._tell_soon()

    def stepped(self, partition: int, reply: StepReply) -> None:
        """A partition has replied."""
        self._totals.add(partition, reply)
        self._changes.heard(partition, reply)
        self._demand.look_for_untaken(holds_some=bool(self._held.used))
        if self._demand.revived():
            self._ask_all(URGENT_S)
        self._leave_if_idle()
        self._news.given_up += [self._given_up(partition, *each) for each in reply.given_up]
        self._tell_soon()

    def _tell_soon(self) -> None:
        """Tell what is new at the end of this step of the loop."""
        if not self._telling and not self._closed:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell_now)

    def _tell_now(self) -> None:
        self._telling = False
        if self._closed:
            return
        crowded, totals = self._crowded, self._totals
        news, self._news = self._news, News()
        news.totals = totals.totals
        news.origins_waiting = crowded
        news.nothing_left = totals.confirmed
        news.over = totals.confirmed and totals.all_closed
        news.next_s = self._next_s()
        self._tell(news)
        self._release_unneeded()

    def _next_s(self) -> float | None:
        """Return the seconds until it should ask again, besides the session's beat."""
        times = []
        if self._totals.to_confirm:
            times.append(_CONFIRM_S)
        if self._free and self._totals.left and (not self._held.used or self._totals.few):
            times.append(_LOOK_S)
        return min(times, default=None)

    # Rows.

    def _given_up(self, partition: int, origin: str, row: TaskRow) -> GivenUp:
        try:
            return GivenUp(origin, row.tries, self._row(partition, row))
        except (ValueError, TypeError):
            # What was stored cannot be read, and stops nothing else.
            return GivenUp(origin, row.tries, None)

    def _rows(self, home: str, rows: list[TaskRow]) -> list[Row]:
        partition, gone = self._held.partition(home).index, self._changes.gone
        return [self._row(partition, row) for row in rows if not gone.has_digest(row.digest)]

    def _row(self, partition: int, row: TaskRow) -> Row:
        return row_of(row, row.number * len(self._held.partitions) + partition)
