"""What an earlier run has left in the queue's file: how much of which origin."""

import sqlite3
from contextlib import closing
from pathlib import Path

_LEFT = """
    SELECT text, count(*) AS waiting, crawl_delay FROM tasks JOIN origins ON origins.id = tasks.origin
    GROUP BY tasks.origin ORDER BY waiting DESC LIMIT ?
"""


def left(path: Path, most: int) -> list[tuple[str, int, float | None]]:
    """Origins with how much waits and their Crawl-delay, the fullest first.

    None of a file that is not there, or is no queue, or is in use: whoever opens it says what is wrong.
    """
    if not path.is_file():
        return []
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            return connection.execute(_LEFT, (most,)).fetchall()
    except sqlite3.Error:
        return []
