"""Keeps robots.txt results, long back-offs and validators in an SQLite file, between runs and for all processes of a machine."""

import asyncio
import os
import time
from asyncio import AbstractEventLoop, Future
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Literal, NamedTuple
from weakref import WeakSet

from polite.errors import InvalidOption, Overloaded, StoreFailed
from polite.log import fields, log
from polite.options import integer, number
from polite.origin import Origin, Target
from polite.ports import SavedBackOff, later
from polite.recrawl import Validators
from polite.robots.snapshot import Snapshot, merged
from polite.stores.robots_database import Kept, Kind, RobotsDatabase

# The most jobs of a batch. A larger batch would delay its first job for the sake of the others.
_MAX_BATCH = 1_000
# The most jobs that may wait. If more arrive, the disk does not keep up, and they are refused.
_MAX_WAITING = 100_000
# The limits of the memory that replaces a failing file: of each kind of row, and the octets of snapshots.
_PENDING_ROWS = 10_000
_PENDING_BYTES = 64 * 1024 * 1024
# Validators are written so many seconds after the first that waits: a crawl of many pages makes one transaction a second.
_WRITE_AFTER_S = 1.0
# Seconds between two attempts at a failing file: one on a locked file takes its whole busy_timeout.
_TRY_EVERY_S = 30.0

_Result = Kept | Exception | None


class _Job(NamedTuple):
    """A write, a read of `what` kind, or only a test of the file (None). `future` receives the result, if it is wanted."""

    name: str
    what: Kept | Kind | None
    future: "Future[Any] | None" = None


class PendingWrites:
    """Writes that the file does not have yet, merged by name."""

    def __init__(self) -> None:
        self.snapshots: dict[str, Snapshot] = {}
        self.back_offs: dict[str, SavedBackOff] = {}
        self.pages: dict[str, Validators] = {}

    def __len__(self) -> int:
        return len(self.snapshots) + len(self.back_offs) + len(self.pages)

    def add(self, name: str, what: Kept) -> None:
        """Add a write, behind those that wait already."""
        match what:
            case Snapshot():
                self.snapshots[name] = merged(self.snapshots.pop(name, None), what)
            case SavedBackOff():
                self.back_offs[name] = later(what, self.back_offs.get(name))
            case Validators():
                self.pages.pop(name, None)
                self.pages[name] = what

    def shrink(self) -> None:
        """Drop what exceeds the limits: the oldest snapshots and validators, and the back-offs that end first."""
        octets = sum(each.octets for each in self.snapshots.values())
        while len(self.snapshots) > _PENDING_ROWS or octets > _PENDING_BYTES:
            octets -= self.snapshots.pop(next(iter(self.snapshots))).octets
        while len(self.pages) > _PENDING_ROWS:
            del self.pages[next(iter(self.pages))]
        if len(self.back_offs) > _PENDING_ROWS:
            by_end = sorted(self.back_offs.items(), key=lambda each: each[1].until)
            self.back_offs = dict(by_end[-_PENDING_ROWS:])

    def updated(self, name: str, kind: Kind, found: _Result, now: float) -> _Result:
        """Return what the file has of a name, merged with what waits."""
        if kind is Validators:
            # Empty validators, which forget a page, are a value too.
            return self.pages.get(name, found)
        if isinstance(snapshot := self.snapshots.get(name), kind):
            return merged(found if isinstance(found, Snapshot) else None, snapshot, now)
        if isinstance(back_off := self.back_offs.get(name), kind):
            return later(back_off, found if isinstance(found, SavedBackOff) else None)
        return found


class SqliteStore:
    """A RobotsStore, BackOffStore and ValidatorStore in an SQLite file.

    Once `save` returns, the snapshot outlives the process, even if it is killed. If the file reaches its limit, validators are
    evicted first, then the snapshots that were saved longest ago, but no back-off that still runs. Validators are written a second
    later. A corrupt file is renamed to `*.corrupt-<time>`.

    One thread does the work, so that the event loop does not wait for the disk. A closed store may be used again.

    Example:
        store = SqliteStore("robots.sqlite", max_bytes=8 << 30)
        async with polite.open_gate("ExampleBot/1.0", store=store) as gate:
            ...

    Args:
        path: The file, created if it is missing. Its folder must be on a local disk.
        max_bytes: The largest size of the file (octets, approximate).
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
        max_bytes: int = 1 << 30,
        busy_timeout: float = 5.0,
        on_failure: Literal["raise", "memory"] = "raise",
        wall: Callable[[], float] = time.time,
    ) -> None:
        name = os.fspath(path) if isinstance(path, os.PathLike) else path
        # Names that mean no file to SQLite.
        if type(name) is not str or not name or name == ":memory:" or "\0" in name:
            raise InvalidOption(
                f"SqliteStore: path must be the name of a file, got {path!r}; use MemoryStore for memory"
            )
        integer("SqliteStore: max_bytes", max_bytes, least=1 << 20, most=1 << 44)
        number("SqliteStore: busy_timeout", busy_timeout, most=3_600)
        if on_failure not in ("raise", "memory"):
            raise InvalidOption(f'SqliteStore: on_failure must be "raise" or "memory", got {on_failure!r}')
        self.path: Path = Path(name)
        self._in_memory = on_failure == "memory"
        # A gate's clock may belong to the event loop, so only the loop reads it. The thread uses the time of the last call.
        self._wall = wall
        self._called_at = 0.0

        # Shared by the event loops and the thread.
        self._lock = RLock()
        self._jobs: deque[_Job] = deque()
        self._busy = False  # the thread takes jobs until there are none
        self._starting: WeakSet[AbstractEventLoop] = WeakSet()  # loops that will have it begin
        self._timed: WeakSet[AbstractEventLoop] = WeakSet()  # loops of which a timer will have it do so
        self._closed = False
        self._executor: ThreadPoolExecutor | None = None
        self._ended: ThreadPoolExecutor | None = None  # the last one that was closed

        # Used by the thread alone. The thread of a closed store may still end when the next one begins.
        self._turn = Lock()
        self._file = RobotsDatabase(
            self.path, busy_timeout=busy_timeout, max_bytes=max_bytes, wall=lambda: self._called_at
        )
        self._pending = PendingWrites()
        self._retry_at: float | None = None  # while the file fails (monotonic)

    async def open(self) -> None:
        """Test now whether the file can be used, instead of at the first call. May be called at any time.

        Raises:
            StoreFailed: It cannot, and `on_failure` is "raise".
        """
        await self._result("", None)

    async def load(self, origin: Origin) -> Snapshot | None:
        """Return the origin's latest snapshot, or None.

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
        """
        return await self._result(str(origin), Snapshot)  # type: ignore[no-any-return]

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep the snapshot, merged with the one that this or another process saved before (see `RobotsStore`).

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
            Overloaded: Too many writes wait.
        """
        await self._result(str(origin), snapshot)

    def hold(self, origin: Origin, back_off: SavedBackOff) -> None:
        """Keep a back-off, unless a kept one ends later. It is durable once a later `save`, or `close`, returns."""
        try:
            self._queue(_Job(str(origin), back_off))
        except Overloaded as error:
            extra = fields("back_offs_unsaved", origin=origin, store=self.path, error=error, count=1)
            log.warning("a back-off of %s was not saved: %s", origin, error, extra=extra)
            return
        if not self._closed:
            self._start()
            return
        # Of a permit that ended after its gate. A thread that is started now would never be ended.
        text = "a back-off of %s came after %s was closed: it is saved if the store is used again"
        log.warning(text, origin, self.path, extra=fields("back_off_late", origin=origin, store=self.path))

    async def held(self, origin: Origin) -> SavedBackOff | None:
        """Return the origin's back-off, over or not, or None.

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
        """
        return await self._result(str(origin), SavedBackOff)  # type: ignore[no-any-return]

    def remember(self, target: Target, validators: Validators) -> None:
        """Remember the validators, or forget the page if they are empty. They are written a second later, or by `close`."""
        try:
            self._queue(_Job(target.url, validators))
        except Overloaded as error:
            extra = fields("validators_unsaved", store=self.path, error=error, count=1)
            log.warning("the validators of a page were not saved: %s", error, extra=extra)
            return
        # After `close` they wait for the next use.
        loop = asyncio.get_running_loop()
        if not self._closed and loop not in self._timed:
            # Of this loop: one that ended before its timer calls nothing.
            self._timed.add(loop)
            loop.call_later(_WRITE_AFTER_S, self._start_late, loop)

    async def validators(self, target: Target) -> Validators:
        """Return what is known of the page: empty for nothing.

        Raises:
            StoreFailed: The file cannot be used, and `on_failure` is "raise".
        """
        return await self._result(target.url, Validators) or Validators()

    async def close(self) -> None:
        """Finish the writes, then close the file and end the thread. May be called twice."""
        with self._lock:
            self._closed = True
            executor, self._executor = self._executor, None
            if executor is None and self._jobs:
                executor = self._thread()  # for what came after `close`
            if executor is not None:
                # The thread then ends by itself, even if the waiting is cancelled.
                asyncio.get_running_loop().run_in_executor(executor, self._finish)
                executor.shutdown(wait=False)
                self._ended = executor
        if self._ended is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._ended.shutdown)

    async def _result(self, name: str, what: Snapshot | Kind | None) -> Any:  # noqa: ANN401 - of the kind `what`
        """Queue a job, and wait for its result."""
        future: Future[Any] = asyncio.get_running_loop().create_future()
        self._queue(_Job(name, what, future))
        self._start()
        return await future

    def _queue(self, job: _Job) -> None:
        with self._lock:
            if len(self._jobs) >= _MAX_WAITING:
                raise Overloaded(f"{self.path}: {_MAX_WAITING} jobs wait already: the disk does not keep up")
            self._jobs.append(job)

    def _start(self) -> None:
        """Have the thread run the queued jobs. Jobs that arrive meanwhile form its next batch (group commit)."""
        self._called_at = self._wall()
        self._closed = False
        loop = asyncio.get_running_loop()
        # While the thread is busy, it takes what is queued. Else it begins after this step: other jobs of the step join the batch.
        if not self._busy and loop not in self._starting:
            self._starting.add(loop)
            loop.call_soon(self._begin, loop)

    def _begin(self, loop: AbstractEventLoop) -> None:
        self._starting.discard(loop)
        with self._lock:
            # After `close`, which runs what is queued, there is nothing to do.
            if self._busy or self._closed:
                return
            if self._executor is None:
                self._executor = self._thread()
            self._busy = True
            # Not `submit`: a loop of virtual time stands still for its own jobs only.
            loop.run_in_executor(self._executor, self._run)

    def _start_late(self, loop: AbstractEventLoop) -> None:
        self._timed.discard(loop)
        if self._jobs and not self._closed:
            self._start()

    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, f"polite {self.path}")

    def _run(self) -> None:
        """Run the queued jobs, batch by batch. Runs in the thread, as all methods below."""
        while True:
            with self._lock:
                jobs = [self._jobs.popleft() for _ in range(min(len(self._jobs), _MAX_BATCH))]
                if not jobs:
                    self._busy = False
                    return
            try:
                with self._turn:
                    results = self._serve(jobs)
            except Exception as error:
                # A defect of ours. The callers must get it, and the thread must go on.
                log.exception("%s failed", self.path, extra=fields("worker_failed", error=error))
                results = [error] * len(jobs)
            settled: dict[AbstractEventLoop, list[tuple[Future[Any], _Result]]] = {}
            for job, result in zip(jobs, results, strict=True):
                if job.future is not None:
                    settled.setdefault(job.future.get_loop(), []).append((job.future, result))
            for loop, each in settled.items():
                # On a loop that was closed meanwhile, no task waits.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(_settle, each)

    def _serve(self, jobs: Sequence[_Job]) -> list[_Result]:
        """Return the result of each job: first of the writes, in one transaction, and then of the reads."""
        reads = [(job.name, job.what) for job in jobs if isinstance(job.what, type)]
        error = self._write(jobs) if len(reads) < len(jobs) else None
        found = iter(self._read(reads) if reads else ())
        return [next(found) if isinstance(job.what, type) else error for job in jobs]

    def _write(self, jobs: Sequence[_Job]) -> StoreFailed | None:
        """Write all that waits, in one transaction. If it fails, keep in memory what no caller gets an error for."""
        for job in jobs:
            if job.what is not None and not isinstance(job.what, type):
                self._pending.add(job.name, job.what)
        pending = self._pending
        if self._is_left_alone():
            pending.shrink()
            return None
        try:
            self._file.write(pending.snapshots, pending.back_offs, pending.pages)
        except StoreFailed as error:
            if self._in_memory:
                self._leave_alone(error)
            else:
                pending.snapshots.clear()
                self._log_unsaved(error)
            pending.shrink()
            return None if self._in_memory else error
        self._pending = PendingWrites()
        self._works()
        return None

    def _read(self, reads: Sequence[tuple[str, Kind]]) -> Sequence[_Result]:
        found: Sequence[_Result] = [None] * len(reads)
        if not self._is_left_alone():
            try:
                found = self._file.read(reads)
                self._works()
            except StoreFailed as error:
                if not self._in_memory:
                    return [error] * len(reads)
                self._leave_alone(error)
        now = self._called_at
        return [self._pending.updated(*read, each, now) for read, each in zip(reads, found, strict=True)]

    def _is_left_alone(self) -> bool:
        """Whether the file failed less than 30 s ago, so that memory takes its place."""
        return self._retry_at is not None and time.monotonic() < self._retry_at

    def _leave_alone(self, error: StoreFailed) -> None:
        if self._retry_at is None:
            extra = fields("store_failed", store=self.path, error=error)
            log.warning("%s; until it works again, memory takes its place", error, extra=extra)
        self._retry_at = time.monotonic() + _TRY_EVERY_S

    def _works(self) -> None:
        if self._retry_at is not None:
            self._retry_at = None
            log.warning("%s works again", self.path, extra=fields("store_works", store=self.path))

    def _log_unsaved(self, error: StoreFailed) -> None:
        for event, what, count in (
            ("back_offs_unsaved", "back-offs", len(self._pending.back_offs)),
            ("validators_unsaved", "validators of pages", len(self._pending.pages)),
        ):
            if count:
                extra = fields(event, store=self.path, error=error, count=count)
                log.warning("%s that are not saved yet: %d (%s)", what, count, error, extra=extra)

    def _finish(self) -> None:
        """Run what is queued, try a last time to write what waits, and close the file."""
        self._run()
        with self._turn:
            if self._pending:
                self._retry_at = None if self._retry_at is None else 0.0
                self._write(())
            if self._pending:
                count = len(self._pending)
                ends = " stays" if count == 1 else "s stay"
                extra = fields("results_unsaved", store=self.path, count=count)
                log.warning("%s: %d result%s in memory", self.path, count, ends, extra=extra)
            self._file.close()


def _settle(results: Sequence[tuple["Future[Any]", _Result]]) -> None:
    for future, result in results:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
