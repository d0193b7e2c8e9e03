"""The backend of a frontier that many processes share: each batch goes to the partitions of its homes."""

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
    GivenUp,
    News,
    Row,
    StoreSummary,
)
from polite.frontier.redis.batch_changes import BatchChanges
from polite.frontier.redis.crawl_totals import CrawlTotals
from polite.frontier.redis.gone_tasks import GoneTasks
from polite.frontier.redis.held_homes import HeldHome, HeldHomes
from polite.frontier.redis.home_demand import HomeDemand
from polite.frontier.redis.known_urls import KnownUrls
from polite.frontier.redis.stored_task import row_of
from polite.frontier.task_store import TaskDraft
from polite.origin import Origin, Target
from polite.ports import Clock, Timer
from polite.stores.redis.changes import Changes, Load
from polite.stores.redis.home import Home
from polite.stores.redis.partition import URGENT_S
from polite.stores.redis.session import Session
from polite.stores.redis.step_reply import StepReply, TaskRow

# While this process has clearly too few homes, or none, it looks for others this often (seconds).
_LOOK_S = 0.5
# How long `close` waits for a server that does not respond, in a session that goes on (seconds).
_CLOSE_S = 5.0
# Before it says that nothing is left, it looks at each partition once more, after so long (seconds).
_CONFIRM_S = 0.2


class RedisBackend:
    """A durable.backend.Backend on a session, and the session's HomeUser.

    Args:
        home_of: Returns the name of a URL's home.
        key: Returns the scheduler's key of a put; None if tasks go in the order of puts.
        busy: Returns whether a worker waits, or a task is in flight.
        is_fetching: Returns whether the robots.txt of an origin is being fetched.
    """

    shared = True
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
        self._partitions = len(session.partitions)
        self._homes = HeldHomes()
        self._totals = CrawlTotals(self._partitions)
        self._demand = HomeDemand(clock, self._totals, busy)
        self._tell: Callable[[News], None] = lambda _: None
        self._news = News()
        self._telling = False
        self._places: Callable[[], int] = lambda: 0
        self._gone = GoneTasks()
        self._known = [KnownUrls() for _ in session.partitions]
        self._changes = BatchChanges(session, home_of, key, self._homes, self._gone, self._known)
        self._under_way: set[asyncio.Future[BatchResult]] = set()
        self._closed = False
        self._closing: asyncio.Future[None] | None = None
        self._close_at = math.inf
        self._close_timer: Timer | None = None

    @property
    def name(self) -> str:
        return self._session.name

    def open(
        self, max_tries: int, tell: Callable[[News], None], places: Callable[[], int]
    ) -> "asyncio.Future[StoreSummary]":
        self._tell, self._places = tell, places
        self._session.user = self
        self._session.closed = False
        # It need not put anything to get some homes.
        for partition in self._session.partitions:
            partition.stir(0.0)
        opened: asyncio.Future[StoreSummary] = asyncio.get_running_loop().create_future()
        # The replies of the partitions tell what waits.
        opened.set_result(StoreSummary(0, 0.0, 0, 0, 0, 0, []))
        return opened

    def require(self, target: Target) -> None:
        self._home_of(target)

    def knows_first(self, target: Target) -> bool:
        held = self._homes.get(self._home_of(target))
        return held is not None and held.home.suspects > 0

    def is_gone(self, number: int) -> bool:
        return self._gone.has_number(number)

    def put_no_more(self) -> None:
        self._session.close_puts()

    def close(self) -> "asyncio.Future[None]":
        self._closed = True
        # The gate goes on with the session.
        self._session.user = None
        for held in list(self._homes):
            self._homes.drop(held)
            self._session.release(held.home)
            self._session.recall(held.home)
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing, self._close_at = closed, self._clock.monotonic() + _CLOSE_S
        self._close_timer = self._clock.call_at(self._close_at, self._close_if_written)
        self._close_if_written()
        return closed

    def _close_if_written(self) -> None:
        """End `close` when all batches are written, or after a while."""
        closing = self._closing
        if closing is None or closing.done():
            return
        if not self._under_way:
            closing.set_result(None)
            if self._close_timer is not None:
                self._close_timer.cancel()
        elif self._clock.monotonic() >= self._close_at:
            closing.set_exception(
                StoreFailed(f"{self.name} did not respond for {_CLOSE_S:g} s while the frontier was closed")
            )

    # Batches.

    def apply(self, batch: Batch) -> "asyncio.Future[BatchResult]":
        parts = self._changes.split(batch)
        result = parts.send(lambda: self._written(batch), self._result)
        self._under_way.add(result)
        result.add_done_callback(self._returned)
        # After what was said of their tasks and origins.
        self._release_unneeded()
        return result

    def _returned(self, result: "asyncio.Future[BatchResult]") -> None:
        self._under_way.discard(result)
        self._close_if_written()

    def _written(self, batch: Batch) -> None:
        self._load_own(batch)
        self._changes.written(batch)

    def _load_own(self, batch: Batch) -> None:
        """Ask for tasks that wait now in origins of held homes that are not active. The server tells only other owners."""
        origins = dict.fromkeys(put.target.origin.text for put in batch.puts if put.ready_at is None)
        origins |= dict.fromkeys(each.target.origin.text for each in batch.requeued if each.ready_at is None)
        origins |= dict.fromkeys(
            mark.target.origin.text for mark in batch.marks.values() if not mark.in_flight
        )
        for text in origins:
            home = self._session.held(self._home_of(Target(Origin.of(text), "/")))
            held = None if home is None else self._homes.get(home.name)
            if home is None or (held is not None and text in held.origins):
                continue
            load = Changes(loads=[Load(home.name, home.fence, text, TASKS_PER_ORIGIN)])
            loaded = self._session.partition(home.name).submit(load)
            loaded.add_done_callback(partial(self._loaded_own, home.name, text))

    def _loaded_own(self, home: str, origin: str, reply: "asyncio.Future[StepReply]") -> None:
        if not reply.cancelled() and reply.exception() is None and (rows := reply.result().loads[0]):
            self._session.bring_news(home, origin, rows)

    def _result(
        self, puts: list[int | None], met: list[bool], loads: list[tuple[str, list[TaskRow]]]
    ) -> BatchResult:
        return BatchResult(
            puts,
            met,
            [self._rows(home, rows) for home, rows in loads],
            [],
            self._crowded,
            None,
            [],
        )

    # Homes that are not needed any more.

    def _release_unneeded(self) -> None:
        for held in [each for each in self._homes if not each.needed]:
            self._homes.drop(held)
            held.home.note = json.dumps(held.failures) if held.failures else None
            self._session.release(held.home)

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
            self._ask_soon()

    def look_again(self) -> None:
        """Ask all partitions anew whether anything is left."""
        self._totals.doubt()
        self._ask_soon()

    def _ask_soon(self) -> None:
        for partition in self._session.partitions:
            partition.stir(URGENT_S)

    def _leave_if_idle(self) -> None:
        """Leave all homes if no worker has come for long: other processes may have some."""
        if not self._demand.is_idle():
            return
        for held in list(self._homes):
            if not self.keeps(held.home):
                self.withdrawn(held.home)
                self._session.recall(held.home)

    def picked(self, home: Home, origins: Sequence[tuple[str, list[TaskRow]]], note: str | None) -> None:
        """A home was taken from the line, with the first tasks of its origins."""
        held = self._homes.hold(home)
        held.failures = {} if note is None else json.loads(note)
        for text, rows in origins:
            self._activate(held, text, rows)
        self._tell_soon()

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        """Tasks were put for an origin of a held home, or became ready."""
        held = self._homes.hold(home)
        active = held.origins.get(origin)
        if active is None:
            self._activate(held, origin, rows)
        else:
            self._news.loaded.append((active.number, self._rows(home.name, rows)))
        self._tell_soon()

    def _activate(self, held: HeldHome, text: str, rows: list[TaskRow]) -> None:
        found = self._rows(held.home.name, rows)
        if found:
            active = self._homes.activate(held, text)
            self._news.activated.append(
                Activation(active.number, text, held.failures.get(text, 0), None, found)
            )

    def keeps(self, home: Home) -> bool:
        """Whether the home should not be given away now."""
        held = self._homes.get(home.name)
        return held is not None and any(self._is_fetching(Origin.of(text)) for text in held.origins)

    def withdrawn(self, home: Home) -> None:
        """The home was lost, or is to be left: its tasks are another process's."""
        held = self._homes.get(home.name)
        if held is None or held.home is not home:
            if not home.over:
                self._session.release(home)
            return
        in_flight = set(held.in_flight)
        numbers = self._homes.drop(held)
        self._news.withdrawn += numbers
        self._news.activated = [each for each in self._news.activated if each.origin_id not in numbers]
        self._news.loaded = [each for each in self._news.loaded if each[0] not in numbers]
        if not home.over:
            # It leaves when these have ended; at the end of this step of the loop if there are none.
            self._homes.hold(home).in_flight = in_flight
        self._tell_soon()

    def failed(self, error: Exception) -> None:
        """No batch will be applied any more."""
        self._news.failure = error
        self._tell_soon()

    def stepped(self, partition: int, reply: StepReply) -> None:
        """A partition has replied."""
        self._totals.add(partition, reply)
        self._known[partition].hear(reply)
        self._demand.look_for_untaken(holds_some=len(self._homes) > 0)
        if self._demand.revived():
            self._ask_soon()
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
        if self._free and self._totals.left and (not len(self._homes) or self._totals.few):
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
        partition = self._session.partition(home).index
        return [self._row(partition, row) for row in rows if not self._gone.has_digest(row.digest)]

    def _row(self, partition: int, row: TaskRow) -> Row:
        return row_of(row, row.number * self._partitions + partition)
