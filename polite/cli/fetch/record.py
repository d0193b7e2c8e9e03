"""What became of each URL, as JSON lines: one object a URL, written as soon as it is known."""

import hashlib
import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from polite.cli.exit_codes import Exit
from polite.cli.fetch.page import Page
from polite.errors import InvalidOption
from polite.robots.fetching.exchange import BodyEnd

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
# A record is written as one object, in ASCII, its URL first.
_BEGINNING = b'{"url": "'
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
    """The file, to be appended to, and the URLs of its last records; a last line that was cut is taken away.

    Raises OSError, and InvalidOption for a file that is not ours: it is left as it is.
    """
    recorded: set[str] = set()
    if is_begun(path):
        recorded, whole = _last_records(path)
        if whole < path.stat().st_size:
            os.truncate(path, whole)
    return path.open("a", encoding="utf-8"), recorded


def _last_records(path: Path) -> tuple[set[str], int]:
    """The URLs of the last records, and where the last of them ends. Raises OSError, InvalidOption."""
    with path.open("rb") as file:
        if not _begins_like_ours(file.read(len(_BEGINNING))):
            raise _not_ours(path, 0)
        at = max(0, file.seek(0, io.SEEK_END) - _TAIL)
        file.seek(at)
        *lines, rest = file.read(_TAIL).split(b"\n")
    if at:
        if not lines:
            raise _not_ours(path, at)
        at += len(lines.pop(0)) + 1  # it began before what was read
    urls = set()
    for line in lines:
        url = _url(line)
        if url is None:
            raise _not_ours(path, at)
        urls.add(url)
        at += len(line) + 1
    if not _may_be_cut(rest):
        raise _not_ours(path, at)
    return urls, at


def _url(line: bytes) -> str | None:
    """The URL that a record is about; None for what is no record of ours."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match record:
        case {"url": str(url), "outcome": str(outcome)} if outcome in _EXITS:
            return url
        case _:
            return None


def _may_be_cut(rest: bytes) -> bool:
    """Whether it may be the first octets of a record: nothing, a beginning that is no JSON yet, or all but its line end."""
    try:
        _, end = json.JSONDecoder().raw_decode(rest.decode("ascii"))
    except (ValueError, RecursionError):
        return _begins_like_ours(rest)
    return end == len(rest) and _url(rest) is not None


def _begins_like_ours(octets: bytes) -> bool:
    return octets.isascii() and octets[: len(_BEGINNING)] == _BEGINNING[: len(octets)]


def _not_ours(path: Path, at: int) -> InvalidOption:
    return InvalidOption(
        f"--output: {path}: what stands at octet {at} is no record of polite fetch; the file is left as it is"
    )


def is_begun(path: Path) -> bool:
    """Whether there are records already."""
    return path.exists() and path.stat().st_size > 0
