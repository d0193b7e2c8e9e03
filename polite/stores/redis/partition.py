"""Partition: sends one batch after the other to a partition of a shared crawl, and keeps the session's deadline."""

import asyncio
import math
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from polite.errors import GateClosed, StoreEmptied, StoreFailed
from polite.pace import exponential
from polite.pacers.homes import Home, Lease
from polite.ports import Clock, Timer
from polite.stores.redis.changes import ChangeBatch, ChangeQueue, Changes, Journal, Mine, Section, encoded
from polite.stores.redis.step import CrawlSettings, StepReply, Unreached, microseconds

if TYPE_CHECKING:
    from polite.stores.redis.link import RedisLink
    from polite.stores.redis.session import Session

# Of a host's name. That of a pod has at most 63 characters.
_MOST_CHARACTERS = 63


def session_name() -> str:
    """Return a new name that no other session has. It begins with the machine's name and the process id, for operators.

    It has no colon and no line break: the server stores it beside other fields.
    """
    machine = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()[:_MOST_CHARACTERS])
    return f"{machine}-{os.getpid()}-{secrets.token_hex(8)}"


# Homes of one batch: about 1 ms of the server.
_CLAIMED_AT_ONCE = 300


def claim(homes: list[Mine], leaving: list[Mine]) -> list[dict[str, object]]:
    """Return what a process holds as its requests say it, each a part. The batch of the last part brings other changes, too.

    Args:
        homes: What is held after that batch.
        leaving: What leaves with it, and is held until then.
    """
    if len(homes) > _CLAIMED_AT_ONCE:
        homes = leaving + homes
    most = _CLAIMED_AT_ONCE
    parts = [homes[at : at + most] for at in range(0, max(1, len(homes)), most)]
    last = len(parts) - 1
    return [{"mine": part, "mine_begins": n == 0, "mine_ends": n == last} for n, part in enumerate(parts)]


class WantedHomes:
    """Waiting calls by home. All calls for one home share one entry; a call that is cancelled leaves nothing behind."""

    def __init__(self) -> None:
        # When each call began (monotonic).
        self._waiters: dict[str, dict[asyncio.Future[Home], float]] = {}
        self._over: Exception | None = None

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def __contains__(self, name: str) -> bool:
        return name in self._waiters

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._waiters))

    async def wait(self, name: str, now: float) -> Home:
        """Wait for `resolve`, `expire` or `fail`."""
        if self._over is not None:
            raise self._over.with_traceback(None)
        waiter: asyncio.Future[Home] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(name, {})
        waiters[waiter] = now
        try:
            return await waiter
        finally:
            waiters.pop(waiter, None)
            if not waiters and self._waiters.get(name) is waiters:
                del self._waiters[name]

    def to_take(self, may_take: Callable[[str], bool], most: int) -> list[str]:
        """Return the names to ask for in this batch. If there are too many, each is asked for in time."""
        names = [name for name in self._waiters if may_take(name)][:most]
        if len(names) == most:
            for name in names:
                self._waiters[name] = self._waiters.pop(name)
        return names

    def resolve(self, home: Home) -> None:
        """Let all calls for this home return it."""
        for waiter in self._waiters.pop(home.name, {}):
            if not waiter.done():
                waiter.set_result(home)

    def expire(self, before: float, error: Exception) -> None:
        """Fail the calls that began before this time (monotonic)."""
        for name, waiters in list(self._waiters.items()):
            for waiter in [waiter for waiter, began in waiters.items() if began <= before]:
                del waiters[waiter]
                if not waiter.done():
                    waiter.set_exception(error)
                    waiter.exception()
            if not waiters:
                del self._waiters[name]

    def fail(self, error: Exception) -> None:
        """Fail all calls, also later ones."""
        self._over = self._over or error
        self.expire(math.inf, error)


# How long a batch is collected (seconds): changes that something waits for, and others.
URGENT_S = 0.03
LAZY_S = 0.15
_FIRST_RETRY_S = 0.05
_LAST_RETRY_S = 1.0
# How long `end` waits for a server that does not respond.
_END_S = 5.0


class Partition:
    """One session of this process with one partition, one batch under way at a time.

    A batch without a reply goes again with a new `seq`, together with `mine`, since whether it was applied is not known. Timers
    and callbacks drive it. Only a call of the link is a task; if a loop that ends cancels it, that is a batch without a reply.

    Attributes:
        homes: What is held here, by name. Only the owner changes it.
        wanted: What is to be taken.
        lease: Until when `homes` are held.
        index: Its number within the crawl.
        settings: What the next batches say of the crawl.
        picking: How many homes the batch under way may pick.
        reply: The last one; None before the first.
        away_since: When the first batch without a reply went (monotonic); None if the last one had a reply.
    """

    def __init__(
        self,
        link: "RedisLink",
        clock: Clock,
        prefix: str,
        settings: CrawlSettings,
        owner: "Session",
        index: int = 0,
    ) -> None:
        self.index = index
        self._link = link
        self._clock = clock
        self._prefix = prefix
        self.settings = settings
        self._owner = owner
        self.homes: dict[str, Home] = {}
        self.wanted: WantedHomes = WantedHomes()
        self.lease: Lease = Lease(clock)
        self.picking: int = 0
        self.reply: StepReply | None = None
        self.away_since: float | None = None
        self._queue = ChangeQueue()
        self._journal = Journal(2 * settings.lease_s)
        self._ended_again: set[str] = set()  # digests of tasks whose ends are to be written again
        self._batch: ChangeBatch | None = None  # taken from the queue, and without a reply
        self._call: asyncio.Task[str] | None = None
        self._timer: Timer | None = None
        self._timer_at = math.inf
        self._end_timer: Timer | None = None
        self._wished_at = math.inf  # when `stir` asked for a batch
        self._sent_at = -math.inf  # when the last batch went (monotonic)
        self._failures = 0  # in a row
        self._session = session_name()
        self._first = True
        self._seq = 0
        # What is held, if the server has to be told: the parts whose reply has not come; [] until the first one goes.
        self._claim: list[dict[str, object]] | None = None
        self._dropped: list[Mine] = []  # homes that are nobody's until the session has ended
        self._confirmed = True  # whether this server, as it is now, knows all that is held
        self._born: str | None = None
        self._server: tuple[str, int, str] | None = None  # of the last reply
        self._begun = False
        self._answered_at = -math.inf  # when the last reply came, or `end` was called (monotonic)
        self._bye = False  # the batch under way is the last
        self._ending: asyncio.Future[None] | None = None
        self._over: Exception | None = None

    def submit(self, changes: Changes, *, lazy: bool = False) -> "asyncio.Future[StepReply]":
        """Send these changes. A digest may be in only one of `ended`, `requeued`, `outs` and `backs`.

        The future is that of the last batch that carries some of them; it waits through outages. Then each of them has its answer.
        It raises StoreFailed, or GateClosed.
        """
        sent: asyncio.Future[StepReply] = asyncio.get_running_loop().create_future()
        section = Section(changes, self._clock.monotonic() + (LAZY_S if lazy else URGENT_S), sent)
        if self._over is not None:
            section.fail(self._over)
            return sent
        self._queue.add(section)
        self.stir(section.due - self._clock.monotonic())
        return sent

    def stir(self, within_s: float) -> None:
        """Send a batch within so many seconds; or as soon as possible while another is under way, or has to be repeated."""
        self._begun = True
        self._wished_at = min(self._wished_at, self._clock.monotonic() + max(0.0, within_s))
        if self._call is None and self._batch is None and self._over is None:
            self._send_at(self._wished_at)

    def end(self) -> "asyncio.Future[None]":
        """End the session after what waits was sent. While the server does not respond, that is given up after 5 s."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_future()
            if not self._begun:
                self.stop(GateClosed("the gate is closed"))
            elif self._over is not None:
                self._ending.set_result(None)
            else:
                self._answered_at = self._clock.monotonic()
                self._give_up()
                self.stir(0.0)
        return self._ending

    def drop(self, home: Home) -> None:
        """Note a home with an open turn that this process, which ends, does not leave: its next owner waits for the lease's end."""
        self._dropped.append(Mine(home.name, home.fence))

    def stop(self, error: Exception) -> None:
        """Send nothing more. What waits fails."""
        if self._over is None:
            self._over = error
        self.lease.until = -math.inf
        self._cancel_timer()
        if self._end_timer is not None:
            self._end_timer.cancel()
        if self._call is not None:
            self._call.cancel()
        if self._batch is not None:
            self._batch.fail(error)
            self._batch = None
        self._queue.fail(error)
        self.wanted.fail(error)
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(None)

    def renew(self) -> None:
        """Begin a new session. The homes of the old one are lost."""
        self._session, self._seq, self._first = session_name(), 0, True
        self._claim, self._confirmed = None, True
        self.lease.until = -math.inf
        self._owner.lose(list(self.homes.values()))

    def _give_up(self) -> None:
        """End in spite of a server that does not respond."""
        at = self._answered_at + _END_S
        if self._over is None and self._clock.monotonic() < at:
            self._end_timer = self._clock.call_at(at, self._give_up)
        elif self._over is None:
            why = f"{self._link.name} did not answer for {_END_S:.0f} s while the crawl was closed"
            self.stop(StoreFailed(why))

    def _send_at(self, when: float) -> None:
        if when < self._timer_at:
            self._cancel_timer()
            self._timer_at = when
            self._timer = self._clock.call_at(when, partial(self._guarded, self._send_batch))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, math.inf

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do `work`, whose exceptions stop the session: nothing may wait for ever."""
        try:
            work()
        except Exception as defect:
            self._owner.fail(defect)
            raise
        except BaseException as error:
            ended = RuntimeError(f"the shared crawl was ended by {error!r}")
            ended.__cause__ = error
            self._owner.fail(ended)
            raise

    def _send_batch(self) -> None:
        self._cancel_timer()
        if self._claim == []:
            leaving = [] if self._batch is None else self._batch.changes.leaves
            self._claim = claim(self._held(), [Mine(each.home, each.fence) for each in leaving])
        # Nothing changes before the server knows all that is held.
        if self._in_part:
            batch = ChangeBatch()
        else:
            batch = self._batch = self._batch or self._queue.cut()
        request = encoded(self._request(batch), batch.changes)
        self._wished_at = math.inf
        self._sent_at = self._clock.monotonic()
        # Read before the command is written: a late reply lengthens nothing.
        sent = self._clock.lasting()
        step = self._link.step(self._prefix, request)
        self._call = asyncio.get_running_loop().create_task(step, name="polite-step")
        self._call.add_done_callback(lambda call: self._guarded(partial(self._returned, call, batch, sent)))

    @property
    def _in_part(self) -> bool:
        """Whether the next batch says a part of what is held, and more is to come."""
        return self._claim is not None and len(self._claim) > 1

    def _request(self, batch: ChangeBatch) -> dict[str, Any]:
        self._seq += 1
        in_part = self._in_part
        self._bye = self._ending is not None and not self._queue and not in_part
        self.picking = 0 if self._ending is not None or in_part else self._owner.room(self)
        # One that is to leave with a later batch would be ours still, and then leave with turns open.
        leaving = {each.home for each in self._queue.leaves}
        if not in_part:
            batch.changes.takes = self.wanted.to_take(
                lambda name: name not in leaving and self._owner.homes.may_take(name), batch.takes_beside
            )
        settings = self.settings
        request: dict[str, Any] = {
            "session": self._session,
            "first": self._first,
            "seq": self._seq,
            "lease": microseconds(settings.lease_s),
            "beat": microseconds(settings.beat_s),
            "born": self._born,
            "newborn": secrets.token_hex(8),
            "gate_alone": self._owner.alone,
            "keyed": settings.keyed,
            "max_tries": settings.max_tries,
            "max_done": settings.max_done,
            "closed": self._owner.closed,
            "bye": self._bye,
            "room": self.picking,
        }
        return request | (self._claim[0] if self._claim else {})

    def _held(self) -> list[Mine]:
        """Return what this process holds as the server must see it: a home that leaves with a later batch is held until then."""
        held = [Mine(each.name, each.fence) for each in self.homes.values()]
        return held + [Mine(each.home, each.fence) for each in self._queue.leaves] + self._dropped

    def _returned(self, call: "asyncio.Task[str]", batch: ChangeBatch, sent: float) -> None:
        self._call = None
        if self._over is not None:
            # Nothing waits for it any more. Retrieved here, so that asyncio does not log it.
            _ = call.cancelled() or call.exception()
        elif call.cancelled():
            self._repeat("its task was cancelled")
        elif isinstance(error := call.exception(), Unreached):
            self._repeat(str(error) or "it was not reached")
        elif error is not None:
            self._owner.fail(self._as_failure(error))
        else:
            self._read(call.result(), batch, sent)

    def _as_failure(self, error: BaseException) -> Exception:
        if isinstance(error, StoreFailed):
            return error
        failed = StoreFailed(f"{self._link.name}: {error!r}")
        failed.__cause__ = error
        return failed

    def _repeat(self, error: str) -> None:
        """Send the batch again, later."""
        if self.away_since is None:
            self.away_since = self._sent_at
        # The batch may have been applied: then homes are ours that we do not know.
        self._claim = []
        if self._batch is not None:
            self._batch.repeated = True
        delay_s = exponential(_FIRST_RETRY_S, self._failures, _LAST_RETRY_S)
        self._failures += 1
        self._send_at(self._clock.monotonic() + delay_s)
        self._owner.unreached(self, self.away_since, error)

    def _read(self, text: str, batch: ChangeBatch, sent: float) -> None:
        try:
            reply = StepReply.decode(text)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            self._owner.fail(self._as_failure(error))
            return
        if reply.err == "old":
            self._repeat("it had a younger batch of this session")
        elif reply.err is not None:
            self._refused(reply.err)
        else:
            self._apply(reply, batch, sent)

    def _refused(self, err: str) -> None:
        """The store holds no crawl, or not the one that we know."""
        if not self._owner.alone:
            what = "another crawl of this name" if err == "other crawl" else "nothing of this crawl any more"
            why = f"{self._link.name} holds {what}: it was flushed, or restarted without its data"
            self._owner.fail(StoreEmptied(why))
            return
        self._born = None
        self._journal.clear()
        self.renew()
        self._repeat(f"its data is gone ({err})")

    def _apply(self, reply: StepReply, batch: ChangeBatch, sent: float) -> None:
        if self._batch is batch:
            self._batch = None
        known = self._born is not None
        moved = known and reply.server != self._server
        self._born, self._server = reply.born, reply.server
        self._failures, self.away_since, self.picking = 0, None, 0
        self._answered_at = self._clock.monotonic()
        said_part = self._in_part
        if reply.lost:
            self.renew()
        else:
            self._renewed(reply, sent, moved=moved)
        now = self._answered_at
        if moved:
            self._restore(now)
        if said_part and not reply.lost:
            self._plan(now, 0.0)
            return
        if self._ended_again:
            self._ended_again.difference_update(ended.digest for ended in batch.changes.ended)
            reply.drop_rows(self._ended_again)
        batch.answer(reply)
        self._journal.add(now, batch.changes, repeated=batch.repeated)
        try:
            within_s = self._owner.replied(self, reply)
        except BaseException as error:
            batch.fail(error if isinstance(error, Exception) else RuntimeError(repr(error)))
            raise
        batch.resolve(reply)
        if self._bye and not self._queue:
            self.stop(GateClosed("the gate is closed"))
        else:
            self._plan(now, within_s)

    def _renewed(self, reply: StepReply, sent: float, *, moved: bool) -> None:
        """The session lasts longer, and the server knows the part of what is held that was sent."""
        self._first = False
        if self._claim is not None and len(self._claim) > 1:
            del self._claim[0]
        else:
            self.reply = reply
            self._claim, self._confirmed = None, True
        settings = self.settings
        until = sent + settings.lease_s - settings.margin_s
        if moved:
            self._confirmed = False
            if not self.lease.good:
                # The session had ended at the last server, and others may have taken its homes there, in writes that are lost.
                self._owner.lose(list(self.homes.values()))
            else:
                # Others may have taken homes before the server was another, and take those that it does not know when quiet is
                # over: `mine` tells, and the reply to its last part counts.
                until = min(until, sent + reply.quiet / 1e6 - settings.margin_s)
                self.lease.until = max(self.lease.until, until)
        elif self._confirmed:
            self.lease.until = until
        self._owner.lose([self.homes[name] for name in reply.gone if name in self.homes])

    def _restore(self, now: float) -> None:
        """Tell a server that may have lost the last writes what they were, and what is ours."""
        self._claim = []
        unwritten = self._batch.changes.ended if self._batch is not None else []
        lost = self._journal.take(now, self._queue.ended | {each.digest for each in unwritten})
        # Until these are written, rows may name tasks that have ended.
        self._ended_again.update(ended.digest for changes in lost for ended in changes.ended)
        self._queue.add_first(Section(changes, now, None) for changes in lost)

    def _plan(self, now: float, within_s: float) -> None:
        if self._over is not None:
            return
        if self._first or self._claim is not None or self._ending is not None:
            within_s = 0.0
        beat_at = self._sent_at + self.settings.beat_s
        self._send_at(max(now, min(now + within_s, self._wished_at, self._queue.due, beat_at)))
