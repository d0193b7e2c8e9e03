"""The URLs that a queue file has seen: fingerprints, the newest in memory and in a log, the others sorted in a table.

A fingerprint that is put into a large B-tree changes a page of its own: that page is written to the log and to the file, for 8
octets. So a change is appended to `lately`, and kept in memory. When there are many, they are put into `seen` in the order of
fingerprints, some with each batch (as DRUM does, of the crawler IRLbot): each page takes several then.

A fingerprint has 64 bits: among n URLs, a new one is taken for a known one with a chance of n to 2**64 (of 100,000,000: 5 to
10**12). A file that was made so has 128 bits, which rules it out, for 8 octets and more of each URL.
"""

import sqlite3
from hashlib import blake2b
from typing import Any

from polite.frontier.sqlite.schema import State, is_wide
from polite.stores.database import Damaged

# Changes that are kept in memory before they are merged: about 50 MB.
_GENERATION = 500_000
# A generation has so many parts, by the first octets of fingerprints. With each batch 1.25 times as many changes are merged as it
# added, in whole parts: to sort all at once would hold the event loop for long, too.
_PARTS = 256
_SHIFT = 56
# Of a URL that was never put. One that a task has is None, and one that is done has the number of its end.
_NEVER = -1


# One of 64 bits is an integer, as SQLite keeps the least octets for these.
Fingerprint = int | bytes


def fingerprint(text: str, *, wide: bool) -> Fingerprint:
    """Return the fingerprint of what a task is seen as."""
    if wide:
        return blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def _part(found: Fingerprint) -> int:
    return (found >> _SHIFT) + _PARTS // 2 if isinstance(found, int) else found[0]


class SeenInFile:
    """Which URLs were put, and which are done: those that tasks have are remembered, and the newest `max_done` ends.

    It has read the log when it is made. After a transaction that was rolled back, make another one, with the state of before.
    Every method may raise sqlite3.Error.

    Attributes:
        wide: Whether the fingerprints of this file have 128 bits.
    """

    def __init__(self, connection: sqlite3.Connection, state: State, max_done: int) -> None:
        self._connection = connection
        self._max_done = max_done
        self.wide: bool = is_wide(connection)
        self._newest = _generation()
        self._count = 0
        # That which is merged now: parts from `state.merged` on.
        self._merging = _generation()
        self._log: list[tuple[Fingerprint, int | None]] = []
        self._owed = 0.0  # how many changes are to be merged now
        (self._any_merged,) = connection.execute("SELECT EXISTS (SELECT 1 FROM seen)").fetchone()
        for row, found, done in connection.execute(
            "SELECT rowid, fingerprint, done FROM lately ORDER BY rowid"
        ):
            kind = bytes if self.wide else int
            if not isinstance(found, kind) or found == b"" or not isinstance(done, int | None):
                raise Damaged("the fingerprint of a URL cannot be read")
            part = _part(found)
            if row > state.merging_to:
                self._newest[part][found] = done
                self._count += 1
                if done is None and found in self._merging[part]:
                    # As in `hold`.
                    self._merging[part][found] = None
            elif part >= state.merged:
                self._merging[part][found] = done

    def knows(self, state: State, found: Fingerprint, *, again: bool) -> bool:
        """Whether a put would be a duplicate."""
        return self._known(state, self._done(found), again)

    def _known(self, state: State, done: int | None, again: bool) -> bool:  # noqa: FBT001
        if done is None or done == _NEVER:
            return done is None
        return not again and done > state.sequence - self._max_done

    def _done(self, found: Fingerprint) -> int | None:
        part = _part(found)
        for generation in (self._newest, self._merging):
            if (done := generation[part].get(found, _NEVER)) != _NEVER:
                return done
        if not self._any_merged:
            return _NEVER
        row = self._connection.execute("SELECT done FROM seen WHERE fingerprint = ?", (found,)).fetchone()
        return _NEVER if row is None else row[0]

    def hold(self, state: State, found: Fingerprint, *, again: bool) -> bool:
        """Note that a task has the URL. False if it is a duplicate."""
        done = self._done(found)
        if done != _NEVER:
            if self._known(state, done, again):
                return False
            # Nowhere is it done any more.
            state.remembered -= 1
            self._connection.execute("DELETE FROM seen WHERE fingerprint = ?", (found,))
            merging = self._merging[_part(found)]
            if found in merging:
                merging[found] = None
        self._note(found, None)
        return True

    def finish(self, state: State, found: Fingerprint) -> None:
        """Note that the URL's task ended."""
        state.sequence += 1
        state.remembered += 1
        self._note(found, state.sequence)

    def _note(self, found: Fingerprint, done: int | None) -> None:
        self._newest[_part(found)][found] = done
        self._count += 1
        self._log.append((found, done))

    def write(self, state: State) -> None:
        """Write what has changed, and merge some of an older generation."""
        log, self._log = self._log, []
        if log:
            self._connection.executemany("INSERT INTO lately (fingerprint, done) VALUES (?, ?)", log)
        if not state.merging_to and self._count >= _GENERATION:
            self._merging, self._newest, self._count, self._owed = self._newest, _generation(), 0, 0.0
            (state.merging_to,) = self._connection.execute("SELECT max(rowid) FROM lately").fetchone()
        if state.merging_to:
            self._owed += 1.25 * len(log)
            while self._owed > 0 and state.merged < _PARTS:
                self._owed -= _GENERATION // _PARTS
                self._merge(state)
            if state.merged == _PARTS:
                self._connection.execute("DELETE FROM lately WHERE rowid <= ?", (state.merging_to,))
                state.merging_to = state.merged = 0

    def _merge(self, state: State) -> None:
        """Merge one part, and forget there what was done too long ago."""
        if state.remembered > self._max_done:
            forgotten = "DELETE FROM seen WHERE fingerprint BETWEEN ? AND ? AND done <= ?"
            limits = *self._range(state.merged), state.sequence - self._max_done
            state.remembered -= self._connection.execute(forgotten, limits).rowcount
        part, self._merging[state.merged] = self._merging[state.merged], {}
        self._any_merged = True
        self._connection.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?)", sorted(part.items()))
        state.merged += 1

    def _range(self, part: int) -> tuple[Fingerprint, Fingerprint]:
        """Return the least and the greatest fingerprint of a part."""
        if self.wide:
            return bytes([part, *bytes(15)]), bytes([part, *b"\xff" * 15])
        first = (part - _PARTS // 2) << _SHIFT
        return first, first + (1 << _SHIFT) - 1


def _generation() -> list[dict[Any, int | None]]:
    """Return no changes, by parts and fingerprints. The fingerprints of one file have one type, so they can be sorted."""
    return [{} for _ in range(_PARTS)]
