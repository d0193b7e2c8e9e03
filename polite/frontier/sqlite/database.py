"""The queue file: tasks that wait or are in flight, and URLs that were seen; one connection, used by one thread."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from polite.errors import StoreFailed
from polite.frontier.durable.batch import (
    Batch,
    BatchResult,
    EndedTask,
    GivenUp,
    Lookup,
    Put,
    StoreSummary,
    TaskState,
)
from polite.frontier.sqlite import notes
from polite.frontier.sqlite.activation import Activations
from polite.frontier.sqlite.file_lock import FileLock, identities, set_foreign_log_aside
from polite.frontier.sqlite.rows import (
    TASK,
    DamagedRows,
    change_origin,
    checksum,
    covered,
    new_row,
    origin_sum,
    row_sum,
    sound_task,
)
from polite.frontier.sqlite.schema import SQL_ORDERS, make
from polite.frontier.sqlite.totals import State
from polite.frontier.sqlite.waiting_origins import WaitingOrigins
from polite.origin import Origin, Target
from polite.schedulers import ORDERS, FileOrder
from polite.stores.database import Damaged, Database
from polite.task import NOT_UNIQUE

# The columns of a Row follow one another: see rows.TASK.
_PUT = f"INSERT INTO tasks (origin, place, later, {TASK}, sum) VALUES (?, ?, ?, {'?, ' * 9}?)"  # noqa: S608 - the words are ours
# Nearly every task has no times, payload and identity: the sqlite3 module takes longer for a None than for any value.
_PUT_PLAIN = "INSERT INTO tasks (origin, place, number, path, priority, depth, tries, sum) VALUES (?, 0, ?, ?, ?, ?, ?, ?)"
_MET_NOW = "INSERT OR IGNORE INTO seen (origin, digest) VALUES (?, ?)"
_GIVE = "UPDATE tasks SET place = 1 WHERE number = ? AND place != 3"
_TASK = f"SELECT text, {TASK}, tasks.sum FROM tasks JOIN origins ON origins.id = tasks.origin WHERE "  # noqa: S608
_SET_ASIDE = "UPDATE tasks SET place = ? WHERE number = ? AND place != 3"
# As plain integers: SQLite is slower with an enum.
_READY, _DELAYED, _DAMAGED = TaskState.READY.value, TaskState.DELAYED.value, TaskState.DAMAGED.value
# SQLite's cache (KiB), and how many pages go from the log into the file at one time.
_CACHE_KIB = 64 * 1024
_LOG_PAGES = 10_000
# A frontier locks its file for long: waiting for it helps little (seconds).
BUSY_TIMEOUT_S = 1.0
_LOCKED = "another frontier, of this process or another, has it open; each needs a file of its own"
# Delayed tasks that become ready with one batch; the others become ready with the next.
_DUE_AT_ONCE = 2_000
# Rows that are set aside from `open` to `close`. A file with more damage cannot be trusted.
_MOST_ASIDE = 1_000
# Origins whose numbers are remembered, each in some 100 octets.
_KNOWN_ORIGINS = 100_000

_T = TypeVar("_T")


class QueueFile:
    """A queue file, used by one thread. If a method raises StoreFailed, nothing of the batch was written.

    A task's row that does not match its checksum is set aside: it stays in the file, and is not given out.

    The file is locked from `open` to `close`, by a lock on a file of its own too (`FileLock`).

    Args:
        order: The order in which an origin's tasks are loaded.
        tasks_per_origin: How many tasks of an origin are loaded when it becomes active.
        max_done: How many URLs that are done are remembered.
    """

    def __init__(self, path: Path, *, order: FileOrder, tasks_per_origin: int, max_done: int) -> None:
        self.path = path
        self._order = SQL_ORDERS[order]
        self._activations = Activations(self._order, tasks_per_origin)
        self._key_of = ORDERS[order]
        self._max_done = max_done
        self._ids: dict[str, tuple[int, int]] = {}  # by text: the row's number, and the checksum of the text
        self._state = State()
        self._aside: dict[int, None] = {}  # numbers of rows found damaged
        self._lock = FileLock(path)
        self._database = Database(
            path,
            self._prepare,
            mode="rwc",
            set_aside=False,
            busy_timeout=BUSY_TIMEOUT_S,
            full="the disk is full: nothing more is given out; what was acknowledged is in the file",
            locked=_LOCKED,
        )
        key = self._order.key or "0"
        # The words in these are ours.
        self._unused = f"UPDATE tasks SET place = 0 WHERE number = ? AND place != 3 RETURNING origin, {key}"  # noqa: S608
        self._back = f"UPDATE tasks SET place = ?, later = ?, tries = ?, sum = ? WHERE number = ? RETURNING origin, {key}"  # noqa: S608
        self._due = (
            f"SELECT number, origin, {key} FROM tasks WHERE place = 2 AND later <= ? ORDER BY later LIMIT ?"  # noqa: S608
        )

    def open(self, max_tries: int) -> StoreSummary:
        """Lock the file. Requeue what was in flight at its last use, with one more try. See Backend.open."""
        self._take()
        with self._words():
            set_foreign_log_aside(self.path, self._lock.noted())
        with self._database.connected() as connection:
            (last,) = connection.execute("SELECT ifnull(max(id), 0) FROM origins").fetchone()
            given_up = self._transact(connection, lambda: self._recovered(connection, max_tries))
            self._activations.budgets.open(connection)
            (aside,) = connection.execute("SELECT count(*) FROM tasks WHERE place = 3").fetchone()
        with self._words():
            self._lock.note(identities(self.path))
        state = self._state
        counts = state.waiting, state.done, state.refused, state.dropped
        return StoreSummary(int(last), state.time, *counts, given_up, int(aside), list(self._aside))

    def apply(self, batch: Batch) -> BatchResult:
        """Write the batch, then read. See Backend.apply."""
        known = len(self._aside)
        with self._database.connected() as connection:
            result = self._transact(connection, lambda: self._written(connection, batch))
        result.damaged = list(self._aside)[known:]
        return result

    def read(self, reading: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what `reading` reads, after all batches so far."""
        with self._database.connected() as connection:
            return reading(connection)

    def _transact(self, connection: sqlite3.Connection, work: Callable[[], _T]) -> _T:
        """Do the work in one transaction. If a task's row is found damaged, set it aside and begin again."""
        while True:
            before = self._state.copy()
            try:
                connection.execute("BEGIN IMMEDIATE")
                result = work()
                self._database.require_in_place()
                connection.execute("COMMIT")
            except BaseException as error:
                # The file was rolled back, and so is what is remembered of it.
                self._state = before
                self._ids.clear()
                if not isinstance(error, DamagedRows):
                    raise
                connection.rollback()
                self._set_aside(connection, error)
            else:
                return result

    def _set_aside(self, connection: sqlite3.Connection, damage: DamagedRows) -> None:
        """Mark the rows as damaged, in a transaction of its own. They no longer count as waiting."""
        if len(self._aside) + len(damage.numbers) > _MOST_ASIDE:
            raise Damaged(f"more than {_MOST_ASIDE} rows do not match their checksums")
        connection.execute("BEGIN IMMEDIATE")
        self._state = State.read(connection)
        for number in damage.numbers:
            changed = connection.execute(_SET_ASIDE, (_DAMAGED, number)).rowcount
            if changed != 1:
                raise damage
            self._state.waiting -= 1
        self._state.write(connection)
        connection.execute("COMMIT")
        self._aside.update(dict.fromkeys(damage.numbers))

    def _written(self, connection: sqlite3.Connection, batch: Batch) -> BatchResult:
        before, changes = self._state.copy(), connection.total_changes
        result = self._applied(connection, batch)
        if connection.total_changes != changes or self._state != before:
            self._state.time = float(batch.now)
            self._state.write(connection)
        return result

    def close(self) -> None:
        """Close and unlock the file. Raises StoreFailed if it was removed or replaced since the last batch."""
        try:
            self._database.require_in_place()
        finally:
            self._database.close()
            self._lock.release()

    def _take(self) -> None:
        """Take the lock. SQLite's own is not enough: a process that opens and closes the file drops it."""
        try:
            if self._lock.acquire(BUSY_TIMEOUT_S):
                return
        except OSError as error:
            raise StoreFailed(
                f"{self.path}: its lock cannot be made: is there such a folder, and may we write there? ({error})"
            ) from error
        raise StoreFailed(f"{self.path}: {_LOCKED}")

    @contextmanager
    def _words(self) -> Iterator[None]:
        """Raise StoreFailed for an OSError of the files beside it."""
        try:
            yield
        except OSError as error:
            raise StoreFailed(f"{self.path}: its lock or its log cannot be used ({error})") from error

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._database.write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        make(connection, self._order)

    def _recovered(self, connection: sqlite3.Connection, max_tries: int) -> list[GivenUp]:
        """Recover from the last use, however it ended: requeue or drop what was in flight, deactivate all origins."""
        self._state = State.read(connection)
        given_up = []
        lost = connection.execute(f"{_TASK} place = 1").fetchmany(self._state.waiting + 1)
        if len(lost) > self._state.waiting:
            # A damaged index may form a loop, which has no end.
            raise Damaged("more tasks are in flight than wait")
        for found in lost:
            text, row = found[0], sound_task(found[0], found[1:])
            number, path, tries, identity = row[0], row[1], row[6] + 1, row[8]
            if tries >= max_tries:
                self._end(connection, [EndedTask(number, "dropped", Target(Origin.of(text), path), identity)])
                self._state.dropped += 1
                given_up.append(GivenUp(text, tries, row))
            else:
                for origin, _ in self._bring_back(connection, number, tries, None):
                    connection.execute("UPDATE origins SET since = ifnull(since, 0) WHERE id = ?", (origin,))
        connection.execute(self._activations.deactivate_all)
        self._state.write(connection)
        return given_up

    def _applied(self, connection: sqlite3.Connection, batch: Batch) -> BatchResult:
        totals, waiting = self._state, WaitingOrigins()
        for number, tries, later, _, _ in batch.requeued:
            rows = self._bring_back(connection, number, tries, later)
            if later is None:
                waiting.add_all(rows)
        marks = batch.marks.items()
        if given := [(number,) for number, (state, *_) in marks if state is TaskState.IN_FLIGHT]:
            connection.executemany(_GIVE, given)
        for number, (state, *_) in marks:
            if state is TaskState.READY:
                waiting.add_all(connection.execute(self._unused, (number,)))
        for crawl_delay, origin in batch.crawl_delays:
            change_origin(connection, origin, crawl_delay=crawl_delay)
        self._activations.budgets.write(connection, batch.spent)
        self._end(connection, batch.ended)
        totals.count(batch.ended)
        self._forget(connection)
        notes.write(connection, batch.notes)
        puts = self._put_all(connection, batch.puts, waiting)
        due = self._call(connection, batch.now, waiting)
        waiting.write(connection, batch.now)
        for change in batch.deactivated:
            self._activations.deactivate(connection, change, batch.now)
        activated = self._activations.activate(connection, batch.activate, batch.now)
        origins_waiting, next_at = self._activations.outlook(connection, batch.now)
        if totals.waiting and not (activated or origins_waiting) and self._activations.none_left(connection):
            raise Damaged(f"{totals.waiting} tasks should wait, and none is found")
        return BatchResult(
            puts,
            [self._seen(connection, lookup) for lookup in batch.seen],
            [self._activations.load(connection, *load) for load in batch.loads],
            activated,
            origins_waiting,
            next_at,
            due,
        )

    def _bring_back(
        self, connection: sqlite3.Connection, number: int, tries: int, later: float | None
    ) -> list[tuple[int, float]]:
        """Requeue a task that was given out; return its origin and key."""
        if number in self._aside:
            return []
        found = connection.execute(f"{_TASK} number = ?", (number,)).fetchone()
        if found is None:
            raise Damaged(f"row {number} of tasks is gone, and was given out")
        text = found[0]
        try:
            row = sound_task(text, found[1:])
        except DamagedRows as error:
            # Its task is in memory: how it ends could not be stored.
            raise Damaged(str(error)) from error
        place = _READY if later is None else _DELAYED
        summed = row_sum(text, (*row[:6], tries, *row[7:]))
        return connection.execute(self._back, (place, later, tries, summed, number)).fetchall()

    def _put_all(
        self, connection: sqlite3.Connection, puts: list[Put], waiting: WaitingOrigins
    ) -> list[int | None]:
        """Return the number of each, or None for a URL or key that was seen before."""
        plain: list[tuple[object, ...]] = []
        numbers = [self._put(connection, put, waiting, plain) for put in puts]
        connection.executemany(_PUT_PLAIN, plain)
        return numbers

    def _put(
        self,
        connection: sqlite3.Connection,
        put: Put,
        waiting: WaitingOrigins,
        plain: list[tuple[object, ...]],
    ) -> int | None:
        """Write the task, or append it to `plain` if it has neither times, nor a payload, nor an identity."""
        state = self._state
        origin, text_sum = self._ids.get(put.origin) or self._id(connection, put.origin)
        key = (origin, _digest(put.path, put.identity))
        if put.identity != NOT_UNIQUE and not connection.execute(_MET_NOW, key).rowcount:
            again = "UPDATE seen SET done = NULL WHERE origin = ? AND digest = ? AND done IS NOT NULL"
            if not put.again or not connection.execute(again, key).rowcount:
                return None
            state.remembered -= 1
        state.number += 1
        state.waiting += 1
        row = new_row(state.number, put)
        number, path, priority, depth, deadline, not_before, tries, payload, identity = row
        summed = checksum(covered(row), text_sum)
        if (
            put.ready_at is None
            and deadline is None
            and not_before is None
            and payload is None
            and identity is None
        ):
            plain.append((origin, number, path, priority, depth, tries, summed))
        else:
            place = _READY if put.ready_at is None else _DELAYED
            connection.execute(_PUT, (origin, place, put.ready_at, *row, summed))
        if put.ready_at is None:
            waiting.add(origin, self._key_of(put))
        return number

    def _id(self, connection: sqlite3.Connection, text: str) -> tuple[int, int]:
        found = connection.execute("SELECT id FROM origins WHERE text = ?", (text,)).fetchone()
        if found is None:
            new = "INSERT INTO origins (text, sum) VALUES (?, ?)"
            cursor = connection.execute(new, (text, origin_sum(text, 0, None)))
            origin = int(cursor.lastrowid or 0)
        else:
            origin = int(found[0])
        if len(self._ids) >= _KNOWN_ORIGINS:
            self._ids.clear()
        known = self._ids[text] = origin, checksum(text)
        return known

    def _seen(self, connection: sqlite3.Connection, lookup: Lookup) -> bool:
        text, path, identity, again = lookup
        row = connection.execute(
            "SELECT done FROM seen WHERE origin = ? AND digest = ?",
            (self._id(connection, text)[0], _digest(path, identity)),
        ).fetchone()
        return row is not None and (row[0] is None or not again)

    def _end(self, connection: sqlite3.Connection, ended: Iterable[EndedTask]) -> None:
        state = self._state
        for number, _, target, identity in ended:
            rows = connection.execute("DELETE FROM tasks WHERE number = ? RETURNING origin, place", (number,))
            for origin, place in rows.fetchall():
                state.waiting -= place != _DAMAGED
                if identity == NOT_UNIQUE:
                    continue
                state.sequence += 1
                state.remembered += 1
                connection.execute(
                    "UPDATE seen SET done = ? WHERE origin = ? AND digest = ?",
                    (state.sequence, origin, _digest(target.path, identity)),
                )

    def _call(self, connection: sqlite3.Connection, now: float, waiting: WaitingOrigins) -> list[int]:
        """Make delayed tasks ready whose time has come; return their origins."""
        due = connection.execute(self._due, (now, _DUE_AT_ONCE)).fetchall()
        for number, origin, key in due:
            connection.execute("UPDATE tasks SET place = 0 WHERE number = ?", (number,))
            waiting.add(origin, key)
        left = connection.execute(self._due, (now, 1)).fetchall() if due else []
        if any(number == left[0][0] for number, *_ in due if left):
            # As in Activations.activate: they would be due for ever.
            raise Damaged("the index of tasks with a time does not match its table")
        return list(dict.fromkeys(origin for _, origin, _ in due))

    def _forget(self, connection: sqlite3.Connection) -> None:
        """Forget the URLs that were done longest ago, beyond `max_done`."""
        surplus = self._state.remembered - self._max_done
        if surplus > 0:
            oldest = "SELECT origin, digest FROM seen WHERE done IS NOT NULL ORDER BY done LIMIT ?"
            rows = connection.execute(oldest, (surplus,)).fetchall()
            connection.executemany("DELETE FROM seen WHERE origin = ? AND digest = ?", rows)
            self._state.remembered -= len(rows)


def _digest(path: str, identity: str | None) -> bytes:
    # A path begins with a slash, and no identity does.
    return blake2b((path if identity is None else identity).encode(), digest_size=16).digest()
