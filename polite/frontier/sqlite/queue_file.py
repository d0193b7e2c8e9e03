"""The queue file: tasks that wait or are in flight, and URLs that were seen; one connection, used by one thread.

A task that is put, taken and done changes three places that grow with the crawl: it goes into `tasks` beside others of its origin
and out of it again, and its URL's fingerprint goes into `lately`, and later, sorted with many others, into `seen`. All else is
appended, or small.
"""

import asyncio
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

from polite.errors import StoreFailed
from polite.frontier.durable.backend import (
    PAYLOAD_LIMIT,
    Activation,
    Batch,
    BatchResult,
    Deactivation,
    EndedTask,
    Found,
    GivenUp,
    News,
    Place,
    Put,
    Requeue,
    Row,
    StoreSummary,
    Totals,
    task_of,
)
from polite.frontier.progress import Counts
from polite.frontier.sqlite.file_lock import FileLock, identities, set_foreign_log_aside
from polite.frontier.sqlite.schema import SQL_KEYS, TASK, State, check, make, write_notes
from polite.frontier.sqlite.seen import SeenInFile, fingerprint
from polite.orders import Order
from polite.origin import Origin, Target
from polite.pacing.budgets import Spent
from polite.schedulers import ORDERS, FileOrder
from polite.stores.database import Damaged, Database
from polite.task import NOT_UNIQUE, Task, seen_as

# The words of all these are ours.
_PUT = f"INSERT INTO tasks (origin, key, {TASK}) VALUES ({', '.join('?' * 11)})"  # noqa: S608
# Nearly every task has no times, payload and identity: the sqlite3 module takes longer for a None than for any value.
_PUT_PLAIN = (
    "INSERT INTO tasks (origin, key, number, path, priority, depth, tries) VALUES (?, ?, ?, ?, ?, ?, 0)"
)
_PUT_DELAYED = f"INSERT INTO delayed (later, origin, key, {TASK}) VALUES ({', '.join('?' * 12)})"  # noqa: S608
_HERE = "WHERE origin = ? AND key = ? AND number = ?"
_DELETE = f"DELETE FROM tasks {_HERE}"  # noqa: S608
_GIVE = "INSERT OR IGNORE INTO out VALUES (?, ?, ?)"
_LAND = "DELETE FROM out WHERE number = ?"
_TRIED = f"UPDATE tasks SET tries = ? {_HERE}"  # noqa: S608
_MOVED = TASK.replace("tries", "?")
_DELAY = (
    f"INSERT INTO delayed (later, origin, key, {TASK}) SELECT ?, origin, key, {_MOVED} FROM tasks {_HERE}"  # noqa: S608
)
_DUE = f"SELECT later, number, origin, key, {TASK} FROM delayed WHERE later <= ? ORDER BY later LIMIT ?"  # noqa: S608
_LOST = f"SELECT text, origin, key, {TASK} FROM out JOIN tasks USING (origin, key, number) JOIN origins ON id = origin"  # noqa: S608
# The first tasks of an origin that are not in flight.
_READY = (
    "FROM tasks WHERE origin = {} AND number NOT IN (SELECT number FROM out) ORDER BY key, number LIMIT {}"
)
_HEADS = f"SELECT {TASK} {_READY.format('?', '?')}"
_HEAD = f"SELECT key {_READY.format('?', 1)}"

_MATCHING = f"""
    SELECT key, number, {TASK} FROM tasks WHERE origin = ? AND (key, number) > (?, ?)
    AND number NOT IN (SELECT number FROM out) ORDER BY key, number LIMIT 500
"""  # noqa: S608
_ORIGIN = "SELECT id, text, failures, crawl_delay FROM origins"
_WAITED = f"{_ORIGIN} WHERE since <= ? ORDER BY since LIMIT ?"
_BEST = f"{_ORIGIN} WHERE best IS NOT NULL ORDER BY best LIMIT ?"
_OUTLOOK = """
    SELECT EXISTS (SELECT 1 FROM origins WHERE since <= :now) OR EXISTS (SELECT 1 FROM origins WHERE best IS NOT NULL),
           (SELECT since FROM origins WHERE since > :now ORDER BY since LIMIT 1), (SELECT later FROM delayed ORDER BY later LIMIT 1)
"""
# A postponed origin stays postponed; one that waits already keeps its place. Nothing is written that is there already.
_WAIT = "UPDATE origins SET since = ? WHERE id = ? AND active = 0 AND since IS NULL"
_WAIT_BY_KEY = """
    UPDATE origins SET since = ifnull(since, :now), best = min(ifnull(best, :key), :key)
    WHERE id = :id AND active = 0 AND ifnull(since, 0) <= :now AND (best IS NULL OR best > :key)
"""
# Each uses an index, and the first nearly always finds a row.
_LEFT = (
    "SELECT 1 FROM origins WHERE active = 1 LIMIT 1",
    "SELECT 1 FROM origins WHERE since IS NOT NULL LIMIT 1",
    "SELECT 1 FROM out LIMIT 1",
    "SELECT 1 FROM delayed LIMIT 1",
)
_SPEND_OF_SCOPE = "INSERT OR REPLACE INTO scope_budgets VALUES (?, ?, ?, ?)"
_SPEND = "INSERT OR REPLACE INTO budgets SELECT id, ?, ?, ? FROM origins WHERE text = ?"
_MOST = 2**63 - 1

# SQLite's cache (KiB), and how many pages go from the log into the file at one time.
_CACHE_KIB = 64 * 1024
_LOG_PAGES = 10_000
# A frontier locks its file for long: waiting for it helps little (seconds).
BUSY_TIMEOUT_S = 1.0
_LOCKED = "another frontier, of this process or another, has it open; each needs a file of its own"
# Delayed tasks that become ready with one batch; the others become ready with the next.
_DUE_AT_ONCE = 2_000
# Origins whose numbers are remembered, each in some 100 octets.
_KNOWN_ORIGINS = 100_000

_T = TypeVar("_T")


class QueueFile:
    """A queue file, used by one thread. If a method raises StoreFailed, nothing of the batch was written.

    The file is locked from `open` to `close`, by a lock on a file of its own too (`FileLock`).

    Args:
        order: The order in which an origin's tasks are loaded.
        tasks_per_origin: How many tasks of an origin are loaded when it becomes active.
        max_done: How many URLs that are done are remembered.
        wide: Whether fingerprints of URLs need 128 bits.
    """

    def __init__(
        self, path: Path, *, order: FileOrder, tasks_per_origin: int, max_done: int, wide: bool = False
    ) -> None:
        self.path = path
        self._wide = wide
        self._order: FileOrder = order
        self._key_of = ORDERS[order]
        self._keyed = SQL_KEYS[order] is not None
        self._tasks_per_origin = tasks_per_origin
        self._max_done = max_done
        self._ids: dict[str, int] = {}
        self._state = State()
        self._seen: SeenInFile | None = None
        self._best_first = (
            0  # 1: of an odd number that becomes active, one more is the best than has waited longest
        )
        self._budgets = True  # whether the file may have any
        self._ready: dict[
            int, float
        ] = {}  # origins to which the batch gives ready tasks, with the least key of these
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

    def open(self, max_tries: int) -> StoreSummary:
        """Lock the file. Requeue what was in flight at its last use, with one more try. See Backend.open."""
        self._take()
        with self._words():
            set_foreign_log_aside(self.path, self._lock.noted())
        with self._database.connected() as connection:
            (last,) = connection.execute("SELECT ifnull(max(id), 0) FROM origins").fetchone()
            self._state = State.read(connection)
            try:
                given_up = self._transact(connection, partial(self._recovered, connection, max_tries))
                rows = connection.execute(
                    "SELECT scope, pages, octets, failures FROM scope_budgets"
                ).fetchall()
                scopes = {key: Spent(*(max(0, int(count)) for count in counts)) for key, *counts in rows}
            except (TypeError, ValueError) as error:
                raise Damaged(f"what it holds cannot be read ({error})") from error
            self._budgets = connection.execute("SELECT 1 FROM budgets LIMIT 1").fetchone() is not None
        with self._words():
            self._lock.note(identities(self.path))
        state = self._state
        totals = Totals(state.waiting, Counts(state.done, state.refused, state.dropped))
        return StoreSummary(int(last), state.time, totals, given_up, scopes)

    def apply(self, batch: Batch) -> BatchResult:
        """Write the batch, then read. See Backend.apply."""
        with self._database.connected() as connection:
            return self._transact(connection, partial(self._written, connection, batch))

    def read(self, reading: Callable[[sqlite3.Connection], _T]) -> _T:
        """Return what `reading` reads, after all batches so far."""
        with self._database.connected() as connection:
            return reading(connection)

    def find(self, order: Order, place: Place | None) -> Found:
        """Return waiting tasks that an order is about; at first those that wait for a time of their own. See Backend.find."""
        with self._database.connected() as connection:
            if place is None:
                every = connection.execute("SELECT id, text FROM origins")
                origins = [(each, origin) for each, text in every if order.touches(origin := Origin.of(text))]
                found = dict(origins)
                later: list[tuple[Origin, Row]] = []
                for origin_id, *row in connection.execute(f"SELECT origin, {TASK} FROM delayed"):  # noqa: S608
                    if origin_id in found and order.covers(found[origin_id], row[1]):
                        later.append((found[origin_id], cast("Row", tuple(row))))
                return Found(later, (origins, -math.inf, 0), self._state.number)
            origins, key, number = place
            if not origins:
                return Found([], None, self._state.number)
            origin_id, origin = origins[0]
            rows = connection.execute(_MATCHING, (origin_id, key, number)).fetchall()
        following = (origins, *rows[-1][:2]) if rows else (origins[1:], -math.inf, 0)
        matching = [(origin, row[2:]) for row in rows if order.covers(origin, row[3])]
        return Found(matching, following, self._state.number)

    def close(self) -> None:
        """Close and unlock the file. Raises StoreFailed if it was removed or replaced since the last batch."""
        try:
            self._database.require_in_place()
        finally:
            self._database.close()
            self._lock.release()

    def _transact(self, connection: sqlite3.Connection, work: Callable[[SeenInFile], _T]) -> _T:
        """Do the work in one transaction."""
        before = replace(self._state)
        try:
            connection.execute("BEGIN IMMEDIATE")
            seen = self._seen = self._seen or SeenInFile(connection, self._state, self._max_done)
            result = work(seen)
            self._database.require_in_place()
            connection.execute("COMMIT")
        except BaseException:
            # The file is rolled back, and so is what is remembered of it.
            self._state, self._seen = before, None
            self._ids.clear()
            self._ready.clear()
            raise
        return result

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
        # Another program's file is left as it is.
        check(connection)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._database.write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        make(connection, self._order, wide=self._wide)
        self._seen = None

    def _recovered(self, connection: sqlite3.Connection, max_tries: int, seen: SeenInFile) -> list[GivenUp]:
        """Recover from the last use, however it ended: requeue or drop what was in flight, deactivate all origins."""
        given_up = []
        for text, origin, key, *row in connection.execute(_LOST).fetchall():
            tries = row[6] + 1
            if tries >= max_tries:
                dropped = EndedTask(task_of(Origin.of(text), tuple(row), queued_at=0.0), "dropped")
                self._end(connection, seen, [dropped])
                given_up.append(GivenUp(text, tries, tuple(row)))
            else:
                connection.execute(_TRIED, (tries, origin, key, row[0]))
                connection.execute("UPDATE origins SET since = ifnull(since, 0) WHERE id = ?", (origin,))
        connection.execute("DELETE FROM out")
        best = f"(SELECT key {_READY.format('origins.id', 1)})" if self._keyed else "NULL"
        connection.execute(f"UPDATE origins SET active = 0, since = 0, best = {best} WHERE active = 1")  # noqa: S608
        seen.write(self._state)
        self._state.write(connection)
        return given_up

    # A batch.

    def _written(self, connection: sqlite3.Connection, batch: Batch, seen: SeenInFile) -> BatchResult:
        before, changes = replace(self._state), connection.total_changes
        result = self._applied(connection, batch, seen)
        seen.write(self._state)
        if connection.total_changes != changes or self._state != before:
            self._state.time = float(batch.now)
            self._state.write(connection)
        return result

    def _applied(self, connection: sqlite3.Connection, batch: Batch, seen: SeenInFile) -> BatchResult:
        now = batch.now
        for requeue in batch.requeued:
            self._requeue(connection, requeue)
        given: list[tuple[int, int, float]] = []
        for number, (task, in_flight) in batch.marks.items():
            origin, key, _ = self._place(connection, task)
            if in_flight:
                given.append((number, origin, key))
            elif connection.execute(_LAND, (number,)).rowcount:
                self._wait(origin, key)
        if given:
            connection.executemany(_GIVE, given)
        if batch.crawl_delays:
            connection.executemany("UPDATE origins SET crawl_delay = ? WHERE id = ?", batch.crawl_delays)
        self._spend(connection, batch.spent)
        self._end(connection, seen, batch.ended)
        write_notes(connection, batch.notes)
        puts = self._put_all(connection, seen, batch.puts)
        due = self._call(connection, now)
        ready, self._ready = self._ready, {}
        if self._keyed:
            connection.executemany(
                _WAIT_BY_KEY, [{"now": now, "id": each, "key": key} for each, key in ready.items()]
            )
        else:
            connection.executemany(_WAIT, [(now, each) for each in ready])
        for change in batch.deactivated:
            self._deactivate(connection, change, now)
        activated = self._activate(connection, batch.activate, now)
        waiting, *times = connection.execute(_OUTLOOK, {"now": now}).fetchone()
        some = activated or waiting or not self._state.waiting
        if not some and all(connection.execute(query).fetchone() is None for query in _LEFT):
            raise Damaged(f"{self._state.waiting} tasks should wait, and none is found")
        lookups = []
        for target, identity, again in batch.seen:
            found = fingerprint(seen_as(target, identity), wide=seen.wide)
            lookups.append(seen.knows(self._state, found, again=again))
        loads = [connection.execute(_HEADS, load).fetchall() for load in batch.loads]
        next_s = min((float(time) - now for time in times if time is not None), default=None)
        news = News(activated=activated, ready=due, origins_waiting=bool(waiting), next_s=next_s)
        return BatchResult(puts, lookups, loads, news)

    def _id(self, connection: sqlite3.Connection, text: str) -> int:
        """Return the number of an origin, known or new."""
        if (known := self._ids.get(text)) is not None:
            return known
        found = connection.execute("SELECT id FROM origins WHERE text = ?", (text,)).fetchone()
        if found is None:
            found = (connection.execute("INSERT INTO origins (text) VALUES (?)", (text,)).lastrowid,)
        origin = int(found[0])
        if len(self._ids) >= _KNOWN_ORIGINS:
            self._ids.clear()
        self._ids[text] = origin
        return origin

    def _place(self, connection: sqlite3.Connection, task: Task) -> tuple[int, float, int]:
        """Return where a task stands: its origin, key and number."""
        text = task.target.origin.text
        origin = self._ids.get(text) or self._id(connection, text)
        return origin, float(self._key_of(task)), task.number

    def _wait(self, origin: int, key: float) -> None:
        """The origin has ready tasks: it waits to become active, if it is not."""
        best = self._ready.get(origin)
        if best is None or key < best:
            self._ready[origin] = key

    # Tasks.

    def _put_all(self, connection: sqlite3.Connection, seen: SeenInFile, puts: list[Put]) -> list[int | None]:
        """Return the number of each, or None for a URL or key that was seen before."""
        state = self._state
        plain: list[tuple[object, ...]] = []
        numbers: list[int | None] = []
        for put in puts:
            target, draft, ready_at = put.target, put.draft, put.ready_at
            priority, depth, not_before, deadline, payload, identity = draft
            if identity != NOT_UNIQUE:
                found = fingerprint(seen_as(target, identity), wide=seen.wide)
                if not seen.hold(state, found, again=put.again):
                    numbers.append(None)
                    continue
            text, path = target.origin.text, target.path
            origin = self._ids.get(text) or self._id(connection, text)
            state.number += 1
            state.waiting += 1
            key, number = float(self._key_of(draft)), state.number
            numbers.append(number)
            place = origin, key, number, path, priority, depth
            if ready_at is deadline is not_before is payload is identity is None:
                plain.append(place)
            else:
                row = *place, deadline, not_before, 0, payload, identity
                connection.execute(*((_PUT, row) if ready_at is None else (_PUT_DELAYED, (ready_at, *row))))
            if ready_at is None:
                self._wait(origin, key)
        if plain:
            # Sorted, those that lie beside each other change one page.
            connection.executemany(_PUT_PLAIN, sorted(plain))
        return numbers

    def _requeue(self, connection: sqlite3.Connection, requeue: Requeue) -> None:
        """A task was tried, and waits again."""
        task, later = requeue
        origin, key, number = place = self._place(connection, task)
        connection.execute(_LAND, (number,))
        if later is None:
            changed = connection.execute(_TRIED, (task.tries, *place)).rowcount
            self._wait(origin, key)
        else:
            connection.execute(_DELAY, (later, task.tries, *place))
            changed = connection.execute(_DELETE, place).rowcount
        if not changed:
            raise Damaged(f"task {number} is gone, and was given out")

    def _end(self, connection: sqlite3.Connection, seen: SeenInFile, ended: list[EndedTask]) -> None:
        state, places = self._state, []
        for task, _ in ended:
            place = self._place(connection, task)
            places.append(place)
            if task.identity != NOT_UNIQUE:
                seen.finish(state, fingerprint(task.seen_as, wide=seen.wide))
        if places:
            deleted = connection.executemany(_DELETE, places).rowcount
            if deleted < len(places):
                # They wait for a time of their own, and were dropped.
                numbers = ", ".join(str(place[2]) for place in places)
                deleted += connection.execute(f"DELETE FROM delayed WHERE number IN ({numbers})").rowcount  # noqa: S608
            state.waiting -= deleted
            connection.executemany(_LAND, [place[2:] for place in places])
            ends = Counter(each.end for each in ended)
            state.done += ends["done"]
            state.refused += ends["refused"]
            state.dropped += ends["dropped"]

    def _call(self, connection: sqlite3.Connection, now: float) -> list[int]:
        """Make delayed tasks ready whose time has come; return their origins."""
        due = connection.execute(_DUE, (now, _DUE_AT_ONCE)).fetchall()
        if due:
            connection.executemany(
                "DELETE FROM delayed WHERE later = ? AND number = ?", [row[:2] for row in due]
            )
            connection.executemany(_PUT, [row[2:] for row in due])
        for _, _, origin, key, *_ in due:
            self._wait(origin, key)
        return list(dict.fromkeys(row[2] for row in due))

    # Origins.

    def _deactivate(self, connection: sqlite3.Connection, change: Deactivation, now: float) -> None:
        """Let the origin wait to become active again, if it has ready tasks."""
        head = connection.execute(_HEAD, (change.origin_id,)).fetchone()
        since, best = (None, None) if head is None else (now, head[0] if self._keyed else None)
        if change.until is not None and head is not None:
            since, best = change.until, None
        connection.execute(
            "UPDATE origins SET active = 0, since = ?, best = ?, failures = ? WHERE id = ?",
            (since, best, change.failures, change.origin_id),
        )

    def _activate(self, connection: sqlite3.Connection, count: int, now: float) -> list[Activation]:
        """Activate those that waited longest; if tasks have keys, half of them are those with the least keys."""
        if not count:
            return []
        best = (count + self._best_first) // 2 if self._keyed else 0
        self._best_first ^= count & 1
        found = connection.execute(_BEST, (best,)).fetchall() if best else []
        # Some of these may be the same.
        found += connection.execute(_WAITED, (now, count)).fetchall()
        chosen = {each[0]: each for each in found}
        activated = []
        for origin, text, failures, crawl_delay in islice(chosen.values(), count):
            rows = connection.execute(_HEADS, (origin, self._tasks_per_origin)).fetchall()
            connection.execute(
                "UPDATE origins SET since = NULL, best = NULL, active = ? WHERE id = ?",
                (1 if rows else 0, origin),
            )
            if rows:
                spent = self._spent(connection, origin)
                activated.append(Activation(origin, text, failures, crawl_delay, rows, spent))
        return activated

    def _spend(self, connection: sqlite3.Connection, spent: dict[str, Spent]) -> None:
        """Write what was spent of budgets. The key of a scope begins with a space."""
        for text, counts in spent.items():
            self._budgets = True
            row = (*(min(count, _MOST) for count in counts), text)
            connection.execute(_SPEND_OF_SCOPE if text.startswith(" ") else _SPEND, row)

    def _spent(self, connection: sqlite3.Connection, origin: int) -> Spent | None:
        """Return what was spent of an origin's budget. A file without budgets costs no read."""
        if not self._budgets:
            return None
        counts = "SELECT pages, octets, failures FROM budgets WHERE origin = ?"
        found = connection.execute(counts, (origin,)).fetchone()
        return None if found is None else Spent(*found)


class SqliteBackend:
    """A durable.backend.Backend. The thread starts with `open` and ends after `close`."""

    shared = None
    payload_limit = PAYLOAD_LIMIT

    def __init__(self, file: QueueFile) -> None:
        self.file = file
        self._thread = ThreadPoolExecutor(1, "polite frontier")

    @property
    def name(self) -> str:
        return str(self.file.path)

    def open(
        self, max_tries: int, tell: Callable[[News], None], places: Callable[[], int]
    ) -> "asyncio.Future[StoreSummary]":
        return self.run(partial(self.file.open, max_tries))

    def apply(self, batch: Batch) -> "asyncio.Future[BatchResult]":
        return self.run(partial(self.file.apply, batch))

    def require(self, target: Target) -> None: ...

    def knows_first(self, target: Target) -> bool:
        return True

    def is_gone(self, number: int) -> bool:
        return False

    def find(self, order: Order, place: Place | None) -> "asyncio.Future[Found]":
        return self.run(partial(self.file.find, order, place))

    def close(self) -> "asyncio.Future[None]":
        closing = self.run(self.file.close)
        closing.add_done_callback(lambda _: self._thread.shutdown(wait=False))
        return closing

    def run(self, work: Callable[[], _T]) -> "asyncio.Future[_T]":
        """Do the work in the file's thread, after all work that was requested before."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work)
