"""The URLs that a queue file has seen: fingerprints, the newest in memory and in a log, the others sorted in a table.

A fingerprint that is put into a large B-tree changes a page of its own: that page is written to the log and to the file, for 8
octets. So a change is appended to `lately`, and kept in memory. When there are many, they are put into `seen` in the order of
fingerprints, some with each batch (as DRUM does, of the crawler IRLbot): each page takes several then.

A fingerprint has 64 bits: among n URLs, a new one is taken for a known one with a chance of n to 2**64 (of 100,000,000: 5 to
10**12).
"""

import sqlite3
from hashlib import blake2b

from polite.frontier.sqlite.schema import State

# Changes that are kept in memory before they are merged: about 50 MB.
_GENERATION = 500_000
# So many are merged with a batch, or four times as many as it has added.
_MERGED_AT_ONCE = 2_000
# Of a URL that was never put. One that a task has is None, and one that is done has the number of its end.
_NEVER = -1
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def fingerprint(origin: int, path: str, identity: str | None) -> int:
    """Return the fingerprint of a task, as SQLite keeps integers. A path begins with a slash, and no identity does."""
    text = path if identity is None else identity
    digest = blake2b(text.encode(), digest_size=8, salt=origin.to_bytes(8, "big")).digest()
    return int.from_bytes(digest, "big", signed=True)


class SeenInFile:
    """Which URLs were put, and which are done: those that tasks have are remembered, and the newest `max_done` ends.

    It has read the log when it is made. After a transaction that was rolled back, make another one. Every method may raise
    sqlite3.Error.
    """

    def __init__(self, connection: sqlite3.Connection, max_done: int) -> None:
        self._connection = connection
        self._max_done = max_done
        log = connection.execute("SELECT fingerprint, done FROM lately ORDER BY rowid")
        self._newest: dict[int, int | None] = dict(log)
        self._merging: dict[int, int | None] = {}
        self._order: list[int] = []  # what is left to merge, the least last
        self._from = _LEAST
        self._last = 0  # the row of `lately` up to which `_merging` has its changes
        self._log: list[tuple[int, int | None]] = []

    def knows(self, state: State, found: int, *, again: bool) -> bool:
        """Whether a put would be a duplicate."""
        return self._known(state, self._done(found), again)

    def _known(self, state: State, done: int | None, again: bool) -> bool:  # noqa: FBT001
        if done is None or done == _NEVER:
            return done is None
        return not again and done > state.sequence - self._max_done

    def _done(self, found: int) -> int | None:
        for generation in (self._newest, self._merging):
            if (done := generation.get(found, _NEVER)) != _NEVER:
                return done
        row = self._connection.execute("SELECT done FROM seen WHERE fingerprint = ?", (found,)).fetchone()
        return _NEVER if row is None else row[0]

    def hold(self, state: State, found: int, *, again: bool) -> bool:
        """Note that a task has the URL. False if it is a duplicate."""
        done = self._done(found)
        if self._known(state, done, again):
            return False
        if done != _NEVER:
            # Nowhere is it done any more.
            state.remembered -= 1
            self._connection.execute("DELETE FROM seen WHERE fingerprint = ?", (found,))
            if found in self._merging:
                self._merging[found] = None
        self._note(found, None)
        return True

    def finish(self, state: State, found: int) -> None:
        """Note that the URL's task ended."""
        state.sequence += 1
        state.remembered += 1
        self._note(found, state.sequence)

    def _note(self, found: int, done: int | None) -> None:
        self._newest[found] = done
        self._log.append((found, done))

    def write(self, state: State) -> None:
        """Write what has changed, and merge some of an older generation."""
        log, self._log = self._log, []
        if log:
            self._connection.executemany("INSERT INTO lately VALUES (?, ?)", log)
        if not self._order and len(self._newest) >= _GENERATION:
            self._merging, self._newest = self._newest, {}
            self._order, self._from = sorted(self._merging, reverse=True), _LEAST
            (self._last,) = self._connection.execute("SELECT max(rowid) FROM lately").fetchone()
        if self._order:
            self._merge(state, max(_MERGED_AT_ONCE, 4 * len(log)))

    def _merge(self, state: State, count: int) -> None:
        some = self._order[: -count - 1 : -1]
        del self._order[-count:]
        to = some[-1] if self._order else _GREATEST
        if state.remembered > self._max_done:
            forgotten = "DELETE FROM seen WHERE fingerprint BETWEEN ? AND ? AND done <= ?"
            oldest = state.sequence - self._max_done
            state.remembered -= self._connection.execute(forgotten, (self._from, to, oldest)).rowcount
        rows = [(found, self._merging[found]) for found in some]
        self._connection.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?)", rows)
        self._from = to + 1
        if not self._order:
            self._connection.execute("DELETE FROM lately WHERE rowid <= ?", (self._last,))
            self._merging = {}
