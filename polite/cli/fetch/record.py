"""What became of each URL, as JSON lines: one object a URL, written as soon as it is known."""

import hashlib
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from polite.cli.exits import Exit
from polite.cli.fetch.page import Page
from polite.robots.exchange import BodyEnd

Record = dict[str, object]

# Fields of an answer that are copied into its record, each cut after so many characters.
_OF_INTEREST = (
    "content-type",
    "content-encoding",
    "content-language",
    "last-modified",
    "etag",
    "cache-control",
    "x-robots-tag",
)
_LONGEST_FIELD = 1_000
# Octets at the end of a file of records that are looked at when it is gone on with: the records of some ten thousand URLs.
# Those that a killed run had written without the frontier knowing are the last of all.
_TAIL = 8 * 1024 * 1024
_EXITS = {
    "fetched": Exit.ALLOWED,
    "refused": Exit.DISALLOWED,
    "invalid": Exit.USAGE,
    "failed": Exit.UNREACHABLE,
    "given up": Exit.UNREACHABLE,
}


class Records:
    """Writes records to `out`; `gravest` is the exit status so far, `counts` how many URLs came to which outcome."""

    def __init__(self, out: TextIO) -> None:
        self.gravest = Exit.ALLOWED
        self.counts = dict.fromkeys(_EXITS, 0)
        self._out = out

    def write(self, url: str, outcome: str, **more: object) -> None:
        """One line, at once. Raises OSError."""
        self.counts[outcome] += 1
        self.gravest = max(self.gravest, _EXITS[outcome])
        self._out.write(json.dumps({"url": url, "outcome": outcome, **more}) + "\n")
        self._out.flush()


def of_page(page: Page, *, fetched_at: float, file: str | None) -> Record:
    """What a record says of a page."""
    return {
        "status": page.status,
        "headers": {
            name: value[:_LONGEST_FIELD] for name in _OF_INTEREST if (value := page.field(name)) is not None
        },
        "length": len(page.body),
        "sha256": digest(page.body),
        "body": None if page.end is BodyEnd.COMPLETE else page.end.name.lower().replace("_", " "),
        "fetched_at": datetime.fromtimestamp(fetched_at, UTC).isoformat(timespec="milliseconds"),
        "file": file,
    }


def digest(body: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()


def reopen(path: Path) -> tuple[TextIO, set[str]]:
    """The file, to be appended to, and the URLs of its last records; a last line that was cut is taken away. Raises OSError."""
    with path.open("a+b") as file:
        size = file.seek(0, io.SEEK_END)
        start = max(0, size - _TAIL)
        file.seek(start)
        tail = file.read(_TAIL)
        file.truncate(start + tail.rfind(b"\n") + 1)
    return path.open("a", encoding="utf-8"), set(_urls(tail))


def _urls(tail: bytes) -> Iterator[str]:
    for line in tail.split(b"\n")[:-1]:
        try:
            url = json.loads(line).get("url")
        except (ValueError, AttributeError, RecursionError):
            continue  # not a whole line, or none of ours: nothing is known by it
        if isinstance(url, str):
            yield url


def is_begun(path: Path) -> bool:
    """Whether there are records already."""
    return path.exists() and path.stat().st_size > 0
