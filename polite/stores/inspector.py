"""Lists, shows and deletes the origins in a robots store's file, for the command line."""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polite.errors import StoreFailed
from polite.stores.robots_database import RobotsDatabase
from polite.stores.rows import inflated

# Without the bodies, which take most of the file.
_LISTED = """
    SELECT origin, outcome, reason, url, status, detail, hops, elapsed_s, octets, capped, fetched_at, expires_at,
           unreachable_since, failures, good_at, until AS back_off_until, because AS back_off_because
    FROM robots LEFT JOIN back_offs USING (origin)
"""
_BACK_OFF_ONLY = """
    SELECT origin, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, until, because
    FROM back_offs WHERE origin NOT IN (SELECT origin FROM robots)
"""
_ALL = f"{_LISTED} UNION ALL {_BACK_OFF_ONLY} ORDER BY origin"
_ONE = f"SELECT * FROM ({_LISTED} UNION ALL {_BACK_OFF_ONLY}) WHERE origin = ?"  # noqa: S608 - the parts are ours
_BODY = """
    SELECT CASE WHEN body IS NULL THEN good_body ELSE body END, CASE WHEN body IS NULL THEN good_octets ELSE octets END
    FROM robots WHERE origin = ?
"""
# The row of a failed server whose back-off still runs; by default it is not deleted.
_BACKING_OFF = "(failures > 0 AND expires_at > ?)"
# SQLite's file format, 1.3.1.
_MAGIC = b"SQLite format 3\0"


class StoreInspector:
    """Opens the file of a store that exists.

    Args:
        path: The file.
        to_change: Open it for writing.

    Raises:
        StoreFailed: The file does not exist or is no store, or (from each method) cannot be used.
    """

    def __init__(self, path: str, *, to_change: bool = False) -> None:
        if not Path(path).is_file():
            missing = "it is a folder, not a file" if Path(path).is_dir() else "there is no such file"
            raise StoreFailed(f"{path}: {missing}")
        if not _may_be_database(Path(path)):
            raise StoreFailed(f"{path} is not a store: it is no SQLite file; name another file")
        self._database = RobotsDatabase(Path(path), mode="rw" if to_change else "ro")

    def origins(self) -> Iterator[dict[str, Any]]:
        """Yield the columns of each origin, in the order of names. A value that is not known is None."""
        return map(dict, self._database.rows(_ALL))

    def origin(self, name: str) -> dict[str, Any] | None:
        """Return the columns of an origin and `body`, the latest copy of its robots.txt; None if it is not known."""
        found = next(map(dict, self._database.rows(_ONE, (name,))), None)
        if found is None:
            return None
        if self._database.damaged(name):
            raise StoreFailed(
                f"{self._database.path}: the copy of {name} cannot be read: its checksum is wrong"
            )
        body, octets = next(map(tuple, self._database.rows(_BODY, (name,))), (None, None))
        try:
            return {**found, "body": inflated(body, octets)}
        except (TypeError, ValueError, zlib.error) as error:
            raise StoreFailed(f"{self._database.path}: the copy of {name} cannot be read: {error}") from error

    def forget(self, name: str | None, now: float, *, expired: bool, back_offs: bool) -> tuple[int, int]:
        """Delete one origin or all. Return how many robots.txt results and how many back-offs were deleted.

        Args:
            name: The origin; None for all.
            now: Wall seconds.
            expired: Delete only what is over.
            back_offs: Delete back-offs that still run, too.
        """
        wanted: list[tuple[str, Sequence[Any]]] = [("1", ())] if name is None else [("origin = ?", (name,))]
        robots, refusals = list(wanted), list(wanted)
        if expired:
            robots.append(("expires_at <= ?", (now,)))
        if not back_offs:
            robots.append((f"NOT {_BACKING_OFF}", (now,)))
        if expired or not back_offs:
            refusals.append(("until <= ?", (now,)))
        results, ended = self._database.change([_delete("robots", robots), _delete("back_offs", refusals)])
        return results, ended

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _may_be_database(path: Path) -> bool:
    """Whether the file starts as those of SQLite do, is empty, or cannot be read, which SQLite explains."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) in (_MAGIC, b"")
    except OSError:
        return True


def _delete(table: str, conditions: Sequence[tuple[str, Sequence[Any]]]) -> tuple[str, Sequence[Any]]:
    """Return a statement and its values. Table and conditions are texts of this module, not of users."""
    where = " AND ".join(condition for condition, _ in conditions)
    values = [value for _, values in conditions for value in values]
    return f"DELETE FROM {table} WHERE {where}", values  # noqa: S608
