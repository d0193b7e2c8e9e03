"""Robots results and long back-offs in one SQLite file: kept between runs, shared by the processes of one machine."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Literal

from polite.errors import InvalidOption, Overloaded, StoreFailed
from polite.options import integer, number
from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.fetching.snapshot import Snapshot, merged
from polite.stores.batch_worker import Worker
from polite.stores.eviction import Room
from polite.stores.fallback import Outage, Unwritten, later
from polite.stores.robots_database import StoreFile

log = logging.getLogger("polite")


class Use(Enum):
    """That a snapshot was used, though not saved."""

    READ = auto()


# What is written: a snapshot, a hold, a use, or nothing but the question whether the file can be written.
_Write = tuple[str, Snapshot | SavedBackOff | Use | None]
# What is read: of which origin, and whether its hold is meant.
_Read = tuple[str, bool]

# What the memory that takes a failing file's place may hold, at most.
_UNWRITTEN_ORIGINS = 10_000
_UNWRITTEN_BYTES = 64 * 1024 * 1024
# Origins that were read and are told with one write; beyond, some are forgotten earlier than they might be.
_MOST_USED = 1_000


class SqliteStore:
    """A RobotsStore and BackOffStore in the file `path`, made when there is none. Its folder must be on a disk of this machine.

    When `save` returns, the snapshot outlives the end of the process, however sudden. At most `max_origins` snapshots in
    about `max_bytes` octets are kept; what was used longest ago goes first, but no back-off that still runs. `busy_timeout`:
    seconds that another process may keep the file locked. `on_failure`: when the file cannot be used, "raise" StoreFailed, or
    warn once and go on in "memory", trying again now and then. A corrupt file is set aside as `*.corrupt-<time>`.

    Two threads do the work, so that the event loop never waits for the disk, nor reading for writing. A closed store may be
    used again. Raises InvalidOption.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_origins: int = 1_000_000,
        max_bytes: int = 1 << 30,
        busy_timeout: float = 5.0,
        on_failure: Literal["raise", "memory"] = "raise",
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.path = _path(path)
        integer("SqliteStore: max_origins", max_origins, least=1, most=1_000_000_000)
        integer("SqliteStore: max_bytes", max_bytes, least=1 << 20, most=1 << 44)
        number("SqliteStore: busy_timeout", busy_timeout, most=3_600)
        if on_failure not in ("raise", "memory"):
            raise InvalidOption(f'SqliteStore: on_failure must be "raise" or "memory", got {on_failure!r}')
        self._in_memory = on_failure == "memory"
        self._unwritten = Unwritten(_UNWRITTEN_ORIGINS, _UNWRITTEN_BYTES)
        self._no_writing = Outage(f"writing {self.path}")
        self._no_reading = Outage(f"reading {self.path}")

        # A gate's clock may be the event loop's, and is asked on the loop: the threads go by when they were asked.
        self._wall = wall
        self._asked_at = 0.0
        room = Room(max_origins, max_bytes)
        self._written = StoreFile(
            self.path, busy_timeout=busy_timeout, max_bytes=max_bytes, room=room, wall=self._now
        )
        self._read = StoreFile(self.path, busy_timeout=busy_timeout, max_bytes=max_bytes, wall=self._now)
        self._late = Unwritten(_UNWRITTEN_ORIGINS, _UNWRITTEN_BYTES)  # holds that came after `close`
        self._closed = False
        self._used: dict[str, None] = {}  # what was read since the last write, to be told with the next
        self._writer: Worker[_Write] | None = None
        self._reader: Worker[_Read] | None = None

    async def open(self) -> None:
        """See now whether the file can be used, instead of at the first question. May be called at any time.

        Raises StoreFailed, unless memory takes its place.
        """
        await self._writing().ask(("", None))

    async def load(self, origin: Origin) -> Snapshot | None:
        """The origin's latest snapshot, or None. Raises StoreFailed, unless memory takes the file's place."""
        name = str(origin)
        unwritten = self._unwritten.snapshots.get(name)
        found: Snapshot | None = await self._reading().ask((name, False))
        if found is not None and len(self._used) < _MOST_USED:
            self._used[name] = None
        return found if unwritten is None else merged(found, unwritten, self._now())

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        """Keep the snapshot, merged with what was known, whichever process saved it (see `RobotsStore`).

        Raises StoreFailed, unless memory takes the file's place; Overloaded.
        """
        used, self._used = self._used, {}
        for name in used:
            self._writing().tell((name, Use.READ))
        await self._writing().ask((str(origin), snapshot))

    def hold(self, origin: Origin, hold: SavedBackOff) -> None:
        """Keep the hold, unless one that ends later is kept; soon, and for good when a later `save`, or `close`, returns."""
        if self._closed:
            # A permit that ended after its gate: no thread is started for it, which nobody would end.
            self._late.keep({}, {str(origin): hold})
            log.warning(
                "a back-off of %s came after %s was closed: it is kept if that is used again",
                origin,
                self.path,
            )
            return
        try:
            self._writing().tell((str(origin), hold))
        except Overloaded as error:
            log.warning("a back-off of %s was not kept: %s", origin, error)

    async def held(self, origin: Origin) -> SavedBackOff | None:
        """The hold kept for the origin, over or not. Raises StoreFailed, unless memory takes the file's place."""
        name = str(origin)
        found: SavedBackOff | None = await self._reading().ask((name, True))
        unwritten = self._unwritten.holds.get(name)
        return found if unwritten is None else later(unwritten, found)

    async def close(self) -> None:
        """Write what was asked for, and give everything back. May be called twice."""
        if self._late.holds:
            self._writing()
        self._closed = True
        workers = [worker for worker in (self._writer, self._reader) if worker is not None]
        self._writer = self._reader = None
        # Both are told before one is waited for: the waiting may be cancelled.
        for worker in workers:
            worker.end()
        for worker in workers:
            await worker.gone()

    def _now(self) -> float:
        return self._asked_at

    def _writing(self) -> Worker[_Write]:
        self._asked_at = self._wall()
        self._closed = False
        if self._writer is None:
            self._writer = Worker(f"polite writes {self.path}", self._write, self._end_writing)
            for held in self._late.holds.items():
                self._writer.tell(held)
            self._late.clear()
        return self._writer

    def _reading(self) -> Worker[_Read]:
        self._asked_at = self._wall()
        self._closed = False
        if self._reader is None:
            self._reader = Worker(f"polite reads {self.path}", self._answers, self._read.close)
        return self._reader

    def _write(self, jobs: Sequence[_Write]) -> list[StoreFailed | None]:
        """In the writer's thread: one transaction for all, and so one fate."""
        snapshots: dict[str, Snapshot] = {}
        holds: dict[str, SavedBackOff] = {}
        used: list[str] = []
        for origin, what in jobs:
            match what:
                case Snapshot():
                    before = snapshots.get(origin)
                    snapshots[origin] = what if before is None else merged(before, what, self._now())
                case SavedBackOff():
                    holds[origin] = later(what, holds.get(origin))
                case Use():
                    used.append(origin)
        if not self._in_memory:
            return [self._tried(snapshots, holds, used)] * len(jobs)
        self._write_or_keep(snapshots, holds, used)
        return [None] * len(jobs)

    def _tried(
        self, snapshots: dict[str, Snapshot], holds: dict[str, SavedBackOff], used: Sequence[str] = ()
    ) -> StoreFailed | None:
        try:
            self._written.write(snapshots, holds, used)
        except StoreFailed as error:
            if holds:
                log.warning("%d back-offs were not kept: %s", len(holds), error)
            return error
        return None

    def _write_or_keep(
        self, snapshots: dict[str, Snapshot], holds: dict[str, SavedBackOff], used: Sequence[str]
    ) -> None:
        """What the file did not take before goes along with what comes now."""
        self._unwritten.keep(snapshots, holds)
        if self._no_writing.waits:
            return
        try:
            self._written.write(self._unwritten.snapshots, self._unwritten.holds, used)
        except StoreFailed as error:
            self._no_writing.began(error)
        else:
            self._unwritten.clear()
            self._no_writing.ended()

    def _end_writing(self) -> None:
        """A last try to write what the file did not take."""
        unwritten = len(self._unwritten.snapshots) + len(self._unwritten.holds)
        if unwritten and self._tried(self._unwritten.snapshots, self._unwritten.holds) is None:
            self._unwritten.clear()
        elif unwritten:
            log.warning("%s: %d results stay in memory", self.path, unwritten)
        self._written.close()

    def _answers(self, jobs: Sequence[_Read]) -> Sequence[Snapshot | SavedBackOff | StoreFailed | None]:
        """In the reader's thread."""
        if self._no_reading.waits:
            return [None] * len(jobs)
        try:
            answers = self._read.answers(jobs)
        except StoreFailed as error:
            if not self._in_memory:
                return [error] * len(jobs)
            self._no_reading.began(error)
            return [None] * len(jobs)
        self._no_reading.ended()
        return answers


def _path(path: str | os.PathLike[str]) -> Path:
    """A name that SQLite would take for no file is no file of ours."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if type(name) is not str or not name or name == ":memory:" or "\0" in name:
        raise InvalidOption(
            f"SqliteStore: path must be the name of a file, got {path!r}; use MemoryStore for memory"
        )
    return Path(name)
