"""BatchChanges: what a batch of the frontier changes in each partition."""

from collections.abc import Callable, Sequence

from polite.frontier.durable.backend import Batch, Deactivation, EndedTask, Mark, Put, Requeue
from polite.frontier.redis.gone_tasks import GoneTasks
from polite.frontier.redis.held_homes import HeldHomes
from polite.frontier.redis.known_urls import KnownUrls
from polite.frontier.redis.partition_batch import PartitionBatches
from polite.frontier.redis.stored_task import digest_of, entry_of, microseconds_until
from polite.frontier.task_store import TaskDraft
from polite.origin import Origin, Target
from polite.stores.redis.changes import Back, Ended, Load, Lookup, Out, Postpone, Requeued
from polite.stores.redis.session import Session
from polite.task import NOT_UNIQUE

# Origins of a home whose failures are handed over with it.
_MOST_NOTED = 5


class BatchChanges:
    """Splits batches by the homes of their tasks, and notes what they say of homes, of ended tasks and of known URLs.

    Args:
        session: The session.
        home_of: Returns the name of a URL's home.
        key: Returns the scheduler's key of a put; None if tasks go in the order of puts.
        homes: The homes that are held.
        gone: Tasks that ended, or wait for a time.
        known: The URLs that each partition has.
    """

    def __init__(
        self,
        session: Session,
        home_of: Callable[[Target], str],
        key: Callable[[TaskDraft], float] | None,
        homes: HeldHomes,
        gone: GoneTasks,
        known: Sequence[KnownUrls],
    ) -> None:
        self._session = session
        self._home_of = home_of
        self._key = key
        self._homes = homes
        self._gone = gone
        self._known = known

    def split(self, batch: Batch) -> PartitionBatches:
        """Return the changes for each partition."""
        parts = PartitionBatches(self._session)
        for put in batch.puts:
            self._put(parts, put, batch.now)
        for text, path, identity, again in batch.seen:
            home, digest = self._placed(Target(Origin.of(text), path), identity)
            parts.at(home).met.append(Lookup(home, text, digest, again))
            parts.order("met", home)
        for requeue in batch.requeued:
            self._requeue(parts, requeue, batch.now)
        for number, mark in batch.marks.items():
            self._mark(parts, number, mark)
        for ended in batch.ended:
            self._end(parts, ended)
        for change in batch.deactivated:
            self._deactivate(parts, change, batch.now)
        for number, count in batch.loads:
            self._load(parts, number, count)
        if batch.check_times:
            parts.ask_all()
        return parts

    def written(self, batch: Batch) -> None:
        """The server knows of these now: a later row that names them is a new task."""
        for put in batch.puts:
            home, digest = self._placed(put.target, put.draft.identity)
            if not digest.startswith(NOT_UNIQUE):
                self._known_at(home).add(digest)
        for ended in batch.ended:
            self._gone.written(digest_of(ended.target, ended.identity), ended.number, ended=True)
        for requeue in batch.requeued:
            if requeue.ready_at is not None:
                self._gone.written(digest_of(requeue.target, requeue.identity), requeue.number, ended=False)

    def _placed(self, target: Target, identity: str | None) -> tuple[str, str]:
        """Return the home and the digest of a task."""
        return self._home_of(target), digest_of(target, identity)

    def _known_at(self, home: str) -> KnownUrls:
        return self._known[self._session.partition(home).index]

    def _put(self, parts: PartitionBatches, put: Put, now: float) -> None:
        home, digest = self._placed(put.target, put.draft.identity)
        if not put.again and digest in self._known_at(home):
            parts.order("puts", None)
            return
        key = None if self._key is None else self._key(put.draft)
        parts.at(home).puts.append(entry_of(put, home, digest, key, now))
        parts.order("puts", home)

    def _requeue(self, parts: PartitionBatches, requeue: Requeue, now: float) -> None:
        home, digest = self._placed(requeue.target, requeue.identity)
        ready_in = microseconds_until(requeue.ready_at, now)
        parts.at(home, lazy=True).requeued.append(
            Requeued(home, requeue.target.origin.text, digest, requeue.tries, ready_in)
        )
        if ready_in is not None:
            self._gone.add(digest, requeue.number)
        self._landed(home, requeue.number)

    def _mark(self, parts: PartitionBatches, number: int, mark: Mark) -> None:
        """Tell who is out. Of a home that was lost nothing is told: its session ended, and that was counted."""
        home, digest = self._placed(mark.target, mark.identity)
        held = self._homes.get(home)
        if held is None:
            return
        text = mark.target.origin.text
        if mark.in_flight:
            held.in_flight.add(number)
            is_suspect = held.home.suspects > 0
            held.home.suspects -= is_suspect
            parts.at(home, lazy=not is_suspect).outs.append(Out(home, held.home.fence, text, digest))
        else:
            parts.at(home, lazy=True).backs.append(Back(home, held.home.fence, text, digest))
            self._landed(home, number)

    def _end(self, parts: PartitionBatches, ended: EndedTask) -> None:
        home, digest = self._placed(ended.target, ended.identity)
        parts.at(home, lazy=True).ended.append(Ended(home, ended.target.origin.text, digest, ended.end))
        self._gone.add(digest, ended.number)
        self._landed(home, ended.number)

    def _landed(self, home: str, number: int) -> None:
        held = self._homes.get(home)
        if held is not None:
            held.in_flight.discard(number)

    def _load(self, parts: PartitionBatches, number: int, count: int) -> None:
        origin = self._homes.origin(number)
        if origin is None:
            parts.order("loads", None)
            return
        home = origin.home.home
        parts.at(home.name).loads.append(Load(home.name, home.fence, origin.text, count))
        parts.order("loads", home.name)

    def _deactivate(self, parts: PartitionBatches, change: Deactivation, now: float) -> None:
        origin = self._homes.origin(change.origin_id)
        if origin is None:
            return
        held, ready_in = origin.home, microseconds_until(change.until, now)
        self._homes.deactivate(origin)
        held.failures.pop(origin.text, None)
        if change.failures and len(held.failures) < _MOST_NOTED:
            held.failures[origin.text] = change.failures
        if ready_in is not None:
            home = held.home
            parts.at(home.name).postpones.append(Postpone(home.name, home.fence, origin.text, ready_in))
