"""BatchChanges: what a batch of the frontier changes in each partition, and which origins, ended tasks and URLs it tells of."""

import asyncio
import json
from base64 import urlsafe_b64encode
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from hashlib import blake2b
from typing import Generic, TypeVar

from polite.frontier.durable.backend import Batch, Deactivation, EndedTask, Mark, Put, Requeue, Row
from polite.frontier.task_store import TaskDraft
from polite.origin import Target
from polite.pacers.homes import Home
from polite.stores.redis.changes import Back, Changes, Ended, Load, Lookup, Out, Postpone, PutEntry, Requeued
from polite.stores.redis.homes import HeldHomes
from polite.stores.redis.step import StepReply, TaskRow
from polite.task import NOT_UNIQUE, seen_as

_K = TypeVar("_K", bound=Hashable)

# Octets of a URL's digest: 1,000,000,000 URLs have two that are equal with a chance of 1 to 10**11.
_DIGEST_OCTETS = 12
# What JSON has instead of infinity, which tasks without a deadline have as their key.
_FAR = 1e300
# Origins of a home whose failures are handed over with it.
_MOST_NOTED = 5
# Ended tasks, and known URLs of a partition, that are remembered: about 10 MB each.
_MOST_RECENT = 100_000


def digest_of(target: Target, identity: str | None) -> str:
    """Return the name of a task among those of its origin. It begins with NOT_UNIQUE if the task is not: see step.lua."""
    digest = blake2b(seen_as(target, identity).encode(), digest_size=_DIGEST_OCTETS).digest()
    name = urlsafe_b64encode(digest).decode()
    return name if identity is None or not identity.startswith(NOT_UNIQUE) else NOT_UNIQUE + name


def entry_of(put: Put, home: str, digest: str, key: float | None, now: float) -> PutEntry:
    """Return what the server stores of a put, `key` being the scheduler's."""
    key = None if key is None else max(-_FAR, min(_FAR, key))
    priority, depth, not_before, deadline, payload, identity = put.draft
    row = [put.target.path, priority, depth, deadline, not_before, payload, key]
    if identity is not None:
        row.append(identity)
    origin, ready_in = put.target.origin.text, _microseconds_until(put.ready_at, now)
    return PutEntry(home, origin, digest, json.dumps(row), key, put.again, ready_in)


def row_of(stored: TaskRow, number: int) -> Row:
    """Return a stored task as the frontier knows it. Raises ValueError or TypeError if it is damaged."""
    path, priority, depth, deadline, not_before, payload, _, *more = json.loads(stored.text)
    identity = more[0] if more else None
    return (number, path, priority, depth, deadline, not_before, stored.tries, payload, identity)


def _microseconds_until(at: float | None, now: float) -> int | None:
    """Return how long a task waits; None if it is ready."""
    return None if at is None else max(0, round((at - now) * 1e6))


class _Recent(Generic[_K]):
    """Keys that were added lately. The one added longest ago is forgotten first."""

    def __init__(self) -> None:
        self._keys: OrderedDict[_K, None] = OrderedDict()

    def __contains__(self, key: _K) -> bool:
        return key in self._keys

    def add(self, key: _K) -> None:
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > _MOST_RECENT:
            self._keys.popitem(last=False)

    def clear(self) -> None:
        self._keys.clear()


class GoneTasks:
    """Tasks that ended, or wait for a time, and are not to be given out, whatever rows say that were read before."""

    def __init__(self) -> None:
        # Until the server knows.
        self._digests: Counter[str] = Counter()
        self._numbers: Counter[int] = Counter()
        # Ended tasks of which the server knows: rows that were read before may be delivered later, by a slower partition.
        self._ended: _Recent[int] = _Recent()

    def add(self, digest: str, number: int) -> None:
        """Note a task that ended or waits for a time. The server does not know yet."""
        self._digests[digest] += 1
        self._numbers[number] += 1

    def written(self, digest: str, number: int, *, ended: bool) -> None:
        """The server knows of it now: a later row with this digest is a new task."""
        _take(self._digests, digest)
        _take(self._numbers, number)
        if ended:
            self._ended.add(number)

    def has_digest(self, digest: str) -> bool:
        """Return whether a row with this digest was read too early."""
        return digest in self._digests

    def has_number(self, number: int) -> bool:
        """Return whether a task is gone."""
        return number in self._numbers or number in self._ended


def _take(counter: "Counter[_K]", key: _K) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


class SplitBatch:
    """A batch of the frontier, split by partition.

    Attributes:
        puts, met, loads: What has an answer, in the batch's order; None: it needs none.
        gone: Digests and numbers of its tasks that have ended or wait for a time, and whether they have ended.
    """

    def __init__(self, homes: HeldHomes) -> None:
        self._homes = homes
        self._changes: dict[int, Changes] = {}
        self._urgent: set[int] = set()
        self.puts: list[PutEntry | None] = []
        self.met: list[Lookup] = []
        self.loads: list[Load | None] = []
        self.gone: list[tuple[str, int, bool]] = []

    def at(self, home: str, *, lazy: bool = False) -> Changes:
        """Return the changes for the home's partition. Unless they are lazy, they go soon."""
        index = self._homes.partition(home).index
        if not lazy:
            self._urgent.add(index)
        return self._changes.setdefault(index, Changes())

    def ask_all(self) -> None:
        """Let each partition reply soon. One that is away replies by itself when it is back."""
        for partition in self._homes.partitions:
            if partition.away_since is None:
                self._changes.setdefault(partition.index, Changes())
                self._urgent.add(partition.index)

    def send(self) -> "asyncio.Future[list[StepReply]]":
        """Send all. The future is done when all partitions have replied."""
        partitions = self._homes.partitions
        return asyncio.gather(
            *(
                partitions[index].submit(changes, lazy=index not in self._urgent)
                for index, changes in self._changes.items()
            )
        )


class BatchChanges:
    """Splits batches by the homes of their tasks, and notes what they say of origins, of ended tasks and of known URLs.

    Args:
        held: The homes of this process.
        home_of: Returns the name of a URL's home.
        key: Returns the scheduler's key of a put; None if tasks go in the order of puts.

    Attributes:
        gone: Tasks that ended, or wait for a time.
        origins: The home and the text of each active origin, by its number among all that this process had. ActiveOrigins knows
            it by that.
    """

    def __init__(
        self, held: HeldHomes, home_of: Callable[[Target], str], key: Callable[[TaskDraft], float] | None
    ) -> None:
        self._held = held
        self._home_of = home_of
        self._key = key
        self.gone: GoneTasks = GoneTasks()
        self.origins: dict[int, tuple[Home, str]] = {}
        self._last_origin = 0
        # URLs that this process put lately: each waits, is in flight or is done, so that putting it again needs no call.
        self._known: list[_Recent[str]] = [_Recent() for _ in held.partitions]
        self._servers: dict[int, tuple[str, int, str]] = {}

    def heard(self, partition: int, reply: StepReply) -> None:
        """Forget what is known if this reply is of another server than the last: it may have lost some URLs."""
        if self._servers.get(partition) != reply.server:
            self._servers[partition] = reply.server
            self._known[partition].clear()

    def activate(self, home: Home, text: str) -> int:
        """Add an active origin, and return its number."""
        self._last_origin += 1
        home.origins[text] = self._last_origin
        self.origins[self._last_origin] = home, text
        return self._last_origin

    def deactivate(self, home: Home) -> list[int]:
        """Remove the active origins of a home; return their numbers."""
        numbers = list(home.origins.values())
        for number in numbers:
            del self.origins[number]
        home.origins.clear()
        home.failures.clear()
        return numbers

    def split(self, batch: Batch) -> SplitBatch:
        """Return the changes for each partition."""
        parts = SplitBatch(self._held)
        for put in batch.puts:
            self._put(parts, put, batch.now)
        for target, identity, again in batch.seen:
            home, digest = self._placed(target, identity)
            lookup = Lookup(home, target.origin.text, digest, again)
            parts.at(home).met.append(lookup)
            parts.met.append(lookup)
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

    def written(self, parts: SplitBatch) -> None:
        """The server knows of these now: a later row that names them is a new task."""
        for put in parts.puts:
            if put is not None and not put.digest.startswith(NOT_UNIQUE):
                self._known_at(put.home).add(put.digest)
        for digest, number, ended in parts.gone:
            self.gone.written(digest, number, ended=ended)

    def _placed(self, target: Target, identity: str | None) -> tuple[str, str]:
        """Return the home and the digest of a task."""
        return self._home_of(target), digest_of(target, identity)

    def _known_at(self, home: str) -> _Recent[str]:
        return self._known[self._held.partition(home).index]

    def _put(self, parts: SplitBatch, put: Put, now: float) -> None:
        home, digest = self._placed(put.target, put.draft.identity)
        if not put.again and digest in self._known_at(home):
            self._known_at(home).add(digest)
            parts.puts.append(None)
            return
        entry = entry_of(put, home, digest, None if self._key is None else self._key(put.draft), now)
        parts.at(home).puts.append(entry)
        parts.puts.append(entry)

    def _requeue(self, parts: SplitBatch, requeue: Requeue, now: float) -> None:
        task, ready_at = requeue
        home, digest = self._placed(task.target, task.identity)
        ready_in = _microseconds_until(ready_at, now)
        entry = Requeued(home, task.target.origin.text, digest, task.tries, ready_in)
        parts.at(home, lazy=True).requeued.append(entry)
        if ready_in is not None:
            self._leaves(parts, digest, task.number, ended=False)
        self._landed(home, task.number)

    def _mark(self, parts: SplitBatch, number: int, mark: Mark) -> None:
        """Tell who is out. Of a home that was lost nothing is told: its session ended, and that was counted."""
        task, in_flight = mark
        name, digest = self._placed(task.target, task.identity)
        home = self._held.used.get(name)
        if home is None:
            return
        text = task.target.origin.text
        if in_flight:
            home.in_flight.add(number)
            is_suspect = home.suspects > 0
            home.suspects -= is_suspect
            parts.at(name, lazy=not is_suspect).outs.append(Out(name, home.fence, text, digest))
        else:
            parts.at(name, lazy=True).backs.append(Back(name, home.fence, text, digest))
            self._landed(name, number)

    def _end(self, parts: SplitBatch, ended: EndedTask) -> None:
        task, end = ended
        home, digest = self._placed(task.target, task.identity)
        parts.at(home, lazy=True).ended.append(Ended(home, task.target.origin.text, digest, end))
        self._leaves(parts, digest, task.number, ended=True)
        self._landed(home, task.number)

    def _leaves(self, parts: SplitBatch, digest: str, number: int, *, ended: bool) -> None:
        self.gone.add(digest, number)
        parts.gone.append((digest, number, ended))

    def _landed(self, name: str, number: int) -> None:
        home = self._held.used.get(name)
        if home is not None:
            home.in_flight.discard(number)

    def _load(self, parts: SplitBatch, number: int, count: int) -> None:
        if number not in self.origins:
            parts.loads.append(None)
            return
        home, text = self.origins[number]
        load = Load(home.name, home.fence, text, count)
        parts.at(home.name).loads.append(load)
        parts.loads.append(load)

    def _deactivate(self, parts: SplitBatch, change: Deactivation, now: float) -> None:
        if change.origin_id not in self.origins:
            return
        # The home stays as long as tasks of it are in flight.
        home, text = self.origins.pop(change.origin_id)
        del home.origins[text]
        home.failures.pop(text, None)
        if change.failures and len(home.failures) < _MOST_NOTED:
            home.failures[text] = change.failures
        ready_in = _microseconds_until(change.until, now)
        if ready_in is not None:
            parts.at(home.name).postpones.append(Postpone(home.name, home.fence, text, ready_in))
