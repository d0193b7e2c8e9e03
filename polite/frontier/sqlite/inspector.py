"""Reads what waits in a queue file, for the command line. Takes no lock."""

import sqlite3
from contextlib import closing
from pathlib import Path

from polite.errors import StoreFailed
from polite.frontier.sqlite.schema import check
from polite.stores.database import WrongFile

_WAITING_BY_ORIGIN = """
    SELECT text, count(*) AS waiting, crawl_delay FROM tasks JOIN origins ON origins.id = tasks.origin
    GROUP BY tasks.origin ORDER BY waiting DESC LIMIT ?
"""


def waiting_by_origin(path: Path, limit: int) -> list[tuple[str, int, float | None]]:
    """Return the origins with the most waiting tasks: text, number of tasks, Crawl-delay.

    Empty if the file does not exist or has no tables yet, or if it cannot be read now: a frontier that opens it tells why.

    Raises:
        StoreFailed: The file is not a queue file.
    """
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            check(connection)
            return connection.execute(_WAITING_BY_ORIGIN, (limit,)).fetchall()
    except WrongFile as error:
        raise StoreFailed(f"{path} {error}") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise StoreFailed(f"{path} is not a queue file ({error}): name another file") from error
        return []
