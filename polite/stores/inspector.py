"""What a robots store's file holds, for people: its origins, and forgetting them."""

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polite.errors import StoreFailed
from polite.stores.robots_database import StoreFile
from polite.stores.rows import inflated

# Without the bodies, which are most of the file.
_LISTED = """
    SELECT origin, outcome, reason, url, status, detail, hops, elapsed_s, octets, capped, fetched_at, expires_at,
           unreachable_since, failures, good_at, until AS back_off_until, because AS back_off_because
    FROM robots LEFT JOIN back_offs USING (origin)
"""
_HELD_ONLY = """
    SELECT origin, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, until, because
    FROM back_offs WHERE origin NOT IN (SELECT origin FROM robots)
"""
_ALL = f"{_LISTED} UNION ALL {_HELD_ONLY} ORDER BY origin"
_ONE = f"SELECT * FROM ({_LISTED} UNION ALL {_HELD_ONLY}) WHERE origin = ?"  # noqa: S608 - the parts are ours
_BODY = """
    SELECT CASE WHEN body IS NULL THEN good_body ELSE body END, CASE WHEN body IS NULL THEN good_octets ELSE octets END
    FROM robots WHERE origin = ?
"""
# A back-off that still runs is not forgotten unless that is asked for: neither a refusal's nor a failed server's.
_RESTING = "(failures > 0 AND expires_at > ?)"


class Inside:
    """Opens a store that exists; `now` is always in wall seconds. Every method raises StoreFailed."""

    def __init__(self, path: str, *, to_change: bool = False) -> None:
        if not Path(path).is_file():
            raise StoreFailed(f"{path}: there is no such file")
        self._file = StoreFile(Path(path), mode="rw" if to_change else "ro")

    def origins(self) -> Iterator[dict[str, Any]]:
        """All origins by name, each with its columns; what is not known of one is None."""
        return map(dict, self._file.rows(_ALL))

    def origin(self, name: str) -> dict[str, Any] | None:
        """One origin with its columns and `body`, the latest copy of its file."""
        found = next(map(dict, self._file.rows(_ONE, (name,))), None)
        if found is None:
            return None
        if self._file.damaged(name):
            raise StoreFailed(f"{self._file.path}: the copy of {name} cannot be read: its checksum is wrong")
        body, octets = next(map(tuple, self._file.rows(_BODY, (name,))), (None, None))
        try:
            return {**found, "body": inflated(body, octets)}
        except (TypeError, ValueError, zlib.error) as error:
            raise StoreFailed(f"{self._file.path}: the copy of {name} cannot be read: {error}") from error

    def forget(self, name: str | None, now: float, *, expired: bool, back_offs: bool) -> tuple[int, int]:
        """Forget one origin or all; how many copies and back-offs went.

        `expired`: only those that are over. `back_offs`: those that still run, too.
        """
        wanted: list[tuple[str, Sequence[Any]]] = [("1", ())] if name is None else [("origin = ?", (name,))]
        robots, holds = list(wanted), list(wanted)
        if expired:
            robots.append(("expires_at <= ?", (now,)))
        if not back_offs:
            robots.append((f"NOT {_RESTING}", (now,)))
        if expired or not back_offs:
            holds.append(("until <= ?", (now,)))
        copies, rests = self._file.change([_delete("robots", robots), _delete("back_offs", holds)])
        return copies, rests

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def _delete(table: str, conditions: Sequence[tuple[str, Sequence[Any]]]) -> tuple[str, Sequence[Any]]:
    """A statement and its values; the words of both conditions and table are ours."""
    where = " AND ".join(condition for condition, _ in conditions)
    values = [value for _, values in conditions for value in values]
    return f"DELETE FROM {table} WHERE {where}", values  # noqa: S608
