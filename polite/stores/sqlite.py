"""Keeps robots.txt results, long back-offs and validators in an SQLite file, between runs and for all processes of a machine."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from pathlib import Path
from threading import Lock
from typing import Literal

from polite.errors import InvalidOption, Overloaded, StoreFailed
from polite.log import fields
from polite.options import integer, number
from polite.origin import Origin, Target
from polite.ports import SavedBackOff
from polite.recrawl import Validators
from polite.robots.snapshot import Snapshot, merged
from polite.stores.batch_worker import BatchWorker
from polite.stores.fallback import CircuitBreaker, PendingWrites, later
from polite.stores.robots_database import Evictor, Kind, RobotsDatabase

# Pages that may wait while the file fails. Beyond it the oldest are dropped: they will be fetched whole.
_MOST_WAITING = 100_000


class UnwrittenValidators:
    """Collects what the event loop remembers until a thread writes it. Both may use it at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[str, Validators] = {}
        self._being_written: Mapping[str, Validators] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, url: str, validators: Validators) -> None:
        """Add a page, in place of what waits for it already."""
        with self._lock:
            # The latest last, as in the file: the first are evicted first.
            self._waiting.pop(url, None)
            self._waiting[url] = validators
            if len(self._waiting) > _MOST_WAITING:
                del self._waiting[next(iter(self._waiting))]

    def get(self, url: str) -> Validators | None:
        """Return what is not in the file yet, or None if that has the latest."""
        with self._lock:
            # Empty validators, which forget a page, are a value too.
            return self._waiting.get(url, self._being_written.get(url))

    def take(self) -> Mapping[str, Validators]:
        """Return what waits, to be written now. Call `written` or `put_back` afterwards."""
        with self._lock:
            self._being_written, self._waiting = self._waiting, {}
            return self._being_written

    def written(self) -> None:
        """Forget what was taken: the file has it."""
        with self._lock:
            self._being_written = {}

    def put_back(self) -> None:
        """Have what was taken wait again: it could not be written."""
        with self._lock:
            older = {url: each for url, each in self._being_written.items() if url not in self._waiting}
            waiting = older | self._waiting
            self._being_written = {}
            for url in list(waiting)[: max(0, len(waiting) - _MOST_WAITING)]:
                del waiting[url]
            self._waiting = waiting


log: logging.Logger = logging.getLogger("polite")


class Use(Enum):
    """A write that saves no snapshot but notes that one was used."""

    READ = auto()


class Pages(Enum):
    """A write of all validators that wait."""

    UNWRITTEN = auto()


# A write: the origin with a snapshot, a back-off, a use, or None, which only tests whether the file can be written.
_Write = tuple[str, Snapshot | SavedBackOff | Use | Pages | None]
# A read: the origin or URL, and what is wanted of it.
_Read = tuple[str, Kind]

# The limits of the memory that replaces a failing file.
_PENDING_ORIGINS = 10_000
_PENDING_BYTES = 64 * 1024 * 1024
# The most origins whose use is noted in one write. Beyond it, some are evicted too early.
_MAX_USED = 1_000
# Validators are written so many seconds after the first that waits: a crawl of many pages makes one transaction a second.
_WRITE_AFTER_S = 1.0


class SqliteStore:
    """A RobotsStore, BackOffStore and ValidatorStore in an SQLite file.

    Once `save` returns, the snapshot outlives the process, even if it is killed. The least recently used snapshots are evicted
    first, and no back-off that still runs. Validators are written a second later, and evicted before snapshots. A corrupt file is
    renamed to `*.corrupt-<time>`.

    Two threads do the work: the event loop does not wait for the disk, and reads do not wait for writes. A closed store may be
    used again.

    Example:
        store = SqliteStore("robots.sqlite", max_origins=100_000)
        async with polite.open_gate("ExampleBot/1.0", store=store) as gate:
            ...

    Args:
        path: The file, created if it is missing. Its folder must be on a local disk.
        max_origins: The most snapshots.
        max_bytes: The largest size of the file (octets, approximate).
        max_urls: The most pages whose validators are kept.
        busy_timeout: Seconds to wait while another process keeps the file locked.
        on_failure: What to do if the file cannot be used: "raise" StoreFailed, or log a warning and continue in "memory",
            retrying every 30 s.
        wall: Returns wall seconds.

    Raises:
        InvalidOption: An option has the wrong type or value.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_origins: int = 1_000_000,
        max_bytes: int = 1 << 30,
        max_urls: int = 1_000_000,
        busy_timeout: float = 5.0,
        on_failure: Literal["raise", "memory"] = "raise",
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path: Path = _path(path)
        integer("SqliteStore: max_origins", max_origins, least=1, most=1_000_000_000)
        integer("SqliteStore: max_bytes", max_bytes, least=1 << 20, most=1 << 44)
        integer("SqliteStore: max_urls", max_urls, least=1, most=1_000_000_000)
        number("SqliteStore: busy_timeout", busy_timeout, most=3_600)
        if on_failure not in ("raise", "memory"):
            raise InvalidOption(f'SqliteStore: on_failure must be "raise" or "memory", got {on_failure!r}')
        self._in_memory = on_failure == "memory"
        self._pending = PendingWrites(_PENDING_ORIGINS, _PENDING_BYTES)
        self._write_breaker = CircuitBreaker(f"writing {self.path}")
        self._read_breaker = CircuitBreaker(f"reading {self.path}")

        # A gate's clock may belong to the event loop, so only the loop reads it. The threads use the time of the last call.
        self._wall = wall
        self._called_at = 0.0
        evictor = Evictor(max_origins, max_bytes, max_urls)
        self._write_file = RobotsDatabase(
            self.path, busy_timeout=busy_timeout, max_bytes=max_bytes, evictor=evictor, wall=self._now
        )
        self._read_file = RobotsDatabase(
            self.path, busy_timeout=busy_timeout, max_bytes=max_bytes, wall=self._now
        )
        self._late = PendingWrites(_PENDING_ORIGINS, _PENDING_BYTES)  # back-offs that came after `close`
        self._closed = False
        self._used: dict[str, None] = {}  # origins read since the last write; the next one notes them
        self._unwritten = UnwrittenValidators()
        self._write_set = False  # a timer will write them
        self._writer: BatchWorker[_Write] | None = None
        self._reader: BatchWorker[_Read] | None = None
        self._ending: list[BatchWorker[_Write] | BatchWorker[_Read]] = []  # until their threads have ended

    async def open(self) -> None:
        """Test now whether the file can be used, instead of at the first call. May be called at any time.

        Raises:
            StoreFailed: It cannot, and `on_failure` is "raise".
        """
        await self._writing().submit(("", None))

    async def load(self, origin: Origin) -> Snapshot | None:
        """Return the origin's latest snapshot, or None.

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
        """
        name = str(origin)
        pending = self._pending.snapshots.get(name)
        found: Snapshot | None = await self._reading().submit((name, Snapshot))
        if found is not None and len(self._used) < _MAX_USED:
            self._used[name] = None
        return found if pending is None else merged(found, pending, self._now())

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep the snapshot, merged with the one that this or another process saved before (see `RobotsStore`).

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
            Overloaded: Too many writes wait.
        """
        used, self._used = self._used, {}
        for name in used:
            self._writing().post((name, Use.READ))
        await self._writing().submit((str(origin), snapshot))

    def hold(self, origin: Origin, back_off: SavedBackOff) -> None:
        """Keep a back-off, unless a kept one ends later. It is durable once a later `save`, or `close`, returns."""
        if self._closed:
            # The back-off of a permit that ended after its gate. A thread started for it would never be ended.
            self._late.keep({}, {str(origin): back_off})
            log.warning(
                "a back-off of %s came after %s was closed: it is saved if the store is used again",
                origin,
                self.path,
                extra=fields("back_off_late", origin=origin, store=self.path),
            )
            return
        try:
            self._writing().post((str(origin), back_off))
        except Overloaded as error:
            log.warning(
                "a back-off of %s was not saved: %s",
                origin,
                error,
                extra=fields("back_offs_unsaved", origin=origin, store=self.path, error=error, count=1),
            )

    async def held(self, origin: Origin) -> SavedBackOff | None:
        """Return the origin's back-off, over or not, or None.

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
        """
        name = str(origin)
        found: SavedBackOff | None = await self._reading().submit((name, SavedBackOff))
        pending = self._pending.back_offs.get(name)
        return found if pending is None else later(pending, found)

    def remember(self, target: Target, validators: Validators) -> None:
        """Remember the validators, or forget the page if they are empty. They are written a second later, or by `close`."""
        self._unwritten.put(target.url, validators)
        # After `close` they wait for the next use: a thread started for them would never be ended.
        if not (self._closed or self._write_set):
            self._write_set = True
            asyncio.get_running_loop().call_later(_WRITE_AFTER_S, self._write_unwritten)

    async def validators(self, target: Target) -> Validators:
        """Return what is known of the page: empty for nothing.

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
        """
        unwritten = self._unwritten.get(target.url)
        if unwritten is not None:
            return unwritten
        found: Validators | None = await self._reading().submit((target.url, Validators))
        return Validators() if found is None else found

    async def close(self) -> None:
        """Finish the writes, then close the file and end the threads. May be called twice."""
        # A writer that is ending writes them, too; a second one would meet its connection.
        if (self._late.back_offs or self._unwritten) and not self._ending:
            self._writing()
        self._closed = True
        self._write_set = False
        workers = [worker for worker in (self._writer, self._reader) if worker is not None]
        self._writer = self._reader = None
        # Shut down both before waiting: the waiting may be cancelled.
        self._ending += workers
        for worker in workers:
            worker.shut_down()
        for worker in list(self._ending):
            await worker.wait_closed()
            self._ending = [each for each in self._ending if each is not worker]

    def _write_unwritten(self) -> None:
        self._write_set = False
        if self._unwritten and not self._closed:
            try:
                self._writing().post(("", Pages.UNWRITTEN))
            except Overloaded as error:
                extra = fields("validators_unsaved", store=self.path, error=error, count=len(self._unwritten))
                log.warning("validators of pages were not saved yet: %s", error, extra=extra)

    def _now(self) -> float:
        return self._called_at

    def _writing(self) -> BatchWorker[_Write]:
        self._called_at = self._wall()
        self._closed = False
        if self._writer is None:
            self._writer = BatchWorker(f"polite writes {self.path}", self._write, self._end_writing)
            for late in self._late.back_offs.items():
                self._writer.post(late)
            self._late.clear()
        return self._writer

    def _reading(self) -> BatchWorker[_Read]:
        self._called_at = self._wall()
        self._closed = False
        if self._reader is None:
            self._reader = BatchWorker(f"polite reads {self.path}", self._read, self._read_file.close)
        return self._reader

    def _write(self, jobs: Sequence[_Write]) -> list[StoreFailed | None]:
        """Write a batch in one transaction, which fails or succeeds as a whole. Runs in the writer's thread."""
        snapshots: dict[str, Snapshot] = {}
        back_offs: dict[str, SavedBackOff] = {}
        used: list[str] = []
        if any(what is Pages.UNWRITTEN for _, what in jobs):
            self._write_validators()
            if len(jobs) == 1:
                return [None]
        for origin, what in jobs:
            match what:
                case Snapshot():
                    before = snapshots.get(origin)
                    snapshots[origin] = what if before is None else merged(before, what, self._now())
                case SavedBackOff():
                    back_offs[origin] = later(what, back_offs.get(origin))
                case Use():
                    used.append(origin)
        if not self._in_memory:
            return [self._try_to_write(snapshots, back_offs, used)] * len(jobs)
        self._write_or_keep(snapshots, back_offs, used)
        return [None] * len(jobs)

    def _try_to_write(
        self, snapshots: dict[str, Snapshot], back_offs: dict[str, SavedBackOff], used: Sequence[str] = ()
    ) -> StoreFailed | None:
        try:
            self._write_file.write(snapshots, back_offs, used)
        except StoreFailed as error:
            if back_offs:
                count = len(back_offs)
                plural = " was" if count == 1 else "s were"
                extra = fields("back_offs_unsaved", store=self.path, error=error, count=count)
                log.warning("%d back-off%s not saved: %s", count, plural, error, extra=extra)
            return error
        return None

    def _write_or_keep(
        self, snapshots: dict[str, Snapshot], back_offs: dict[str, SavedBackOff], used: Sequence[str]
    ) -> None:
        """Write a batch together with the pending writes; keep all of them in memory if it fails."""
        self._pending.keep(snapshots, back_offs)
        if self._write_breaker.is_open:
            return
        try:
            self._write_file.write(self._pending.snapshots, self._pending.back_offs, used)
        except StoreFailed as error:
            self._write_breaker.record_failure(error)
        else:
            self._pending.clear()
            self._write_breaker.record_success()

    def _write_validators(self) -> None:
        """Write pending validators. If that fails, they stay pending; no caller waits for them. Runs in the writer's thread."""
        if self._write_breaker.is_open:
            return
        try:
            self._write_file.write_validators(self._unwritten.take())
        except StoreFailed as error:
            self._unwritten.put_back()
            if self._in_memory:
                self._write_breaker.record_failure(error)
            else:
                count = len(self._unwritten)
                plural = "s"[count == 1 :]
                extra = fields("validators_unsaved", store=self.path, error=error, count=count)
                log.warning(
                    "the validators of %d page%s were not saved: %s", count, plural, error, extra=extra
                )
        else:
            self._unwritten.written()

    def _end_writing(self) -> None:
        """Try a last time to write the pending writes, then close the file. Runs in the writer's thread."""
        if self._unwritten:
            self._write_validators()
        pending = len(self._pending.snapshots) + len(self._pending.back_offs)
        if pending and self._try_to_write(self._pending.snapshots, self._pending.back_offs) is None:
            self._pending.clear()
        elif pending:
            log.warning(
                "%s: %d result%s in memory",
                self.path,
                pending,
                " stays" if pending == 1 else "s stay",
                extra=fields("results_unsaved", store=self.path, count=pending),
            )
        self._write_file.close()

    def _read(
        self, jobs: Sequence[_Read]
    ) -> Sequence[Snapshot | SavedBackOff | Validators | StoreFailed | None]:
        """Read a batch. Runs in the reader's thread."""
        if self._read_breaker.is_open:
            return [None] * len(jobs)
        try:
            found = self._read_file.load_batch(jobs)
        except StoreFailed as error:
            if not self._in_memory:
                return [error] * len(jobs)
            self._read_breaker.record_failure(error)
            return [None] * len(jobs)
        self._read_breaker.record_success()
        return found


def _path(path: str | os.PathLike[str]) -> Path:
    """Refuse names that mean no file to SQLite."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if type(name) is not str or not name or name == ":memory:" or "\0" in name:
        raise InvalidOption(
            f"SqliteStore: path must be the name of a file, got {path!r}; use MemoryStore for memory"
        )
    return Path(name)
