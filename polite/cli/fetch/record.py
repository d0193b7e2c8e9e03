"""The records of a run, as JSON lines: one object per URL with its outcome."""

import hashlib
import io
import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from polite.cli.exit_codes import Exit
from polite.cli.fetch.cause import ROBOTS, Cause
from polite.cli.fetch.page import Page
from polite.errors import InvalidOption
from polite.robots.fetching.exchange import BodyEnd

Record = dict[str, Any]

# Response fields that are copied into the record, and the limit on the length of each (characters).
_COPIED_FIELDS = (
    "content-type",
    "content-encoding",
    "content-language",
    "last-modified",
    "etag",
    "cache-control",
    "robots-tag",
    "x-robots-tag",
    # What the site says of the use of the page (`polite.usage`).
    "content-usage",
    "content-signal",
    "tdm-reservation",
    "tdm-policy",
    # What it asks for instead of the page: a price, or a licence.
    "crawler-price",
    "www-authenticate",
)
_LONGEST_FIELD = 1_000
# When a run is resumed, only this many octets at the end of the records are read: some ten thousand records.
# Records that a killed run wrote before the frontier finished their tasks are the very last ones.
_TAIL = 8 * 1024 * 1024
# A record is one ASCII object with its URL first.
_BEGINNING = b'{"url": "'
_EXITS = {
    "fetched": Exit.ALLOWED,
    "refused": Exit.DISALLOWED,
    "invalid": Exit.USAGE,
    "failed": Exit.UNREACHABLE,
    "given up": Exit.UNREACHABLE,
    "duplicate": Exit.ALLOWED,
}
# Records of lines, not of requests: their URLs may be still to be fetched.
_OF_LINES = ("invalid", "duplicate")
_OF_JOURNAL = ("url", "input", "outcome", "from")
# Outcomes after which another attempt may fetch the URL.
UNDONE = ("failed", "given up")
_LEAST_ERROR = 400


class Records:
    """Writes records to `out`.

    Args:
        out: the file of records.
        journal: receives the fields of each record that a later run needs, if it cannot read `out`: that is standard output.

    Attributes:
        gravest: the exit status so far.
        counts: the number of URLs for each outcome.
        parts: how many of them have what the summary says of some: see `run_status.totals`.
    """

    def __init__(self, out: TextIO, journal: TextIO | None = None) -> None:
        self.gravest: Exit = Exit.ALLOWED
        self.counts: dict[str, int] = dict.fromkeys(_EXITS, 0)
        self.parts: Counter[str] = Counter()
        self._out = out
        self._journal = journal

    def write(
        self, url: str, outcome: str, cause: Cause | None = None, *, given: str | None = None, **more: object
    ) -> None:
        """Write and flush one record. `given` is the line of the list, if it is not the URL. Raises OSError."""
        self.counts[outcome] += 1
        status = more.get("status")
        error_page = outcome == "fetched" and isinstance(status, int) and status >= _LEAST_ERROR
        of_robots = outcome == "given up" and cause is not None and cause.code.startswith(ROBOTS)
        self.parts[outcome] += error_page or of_robots
        self.gravest = max(self.gravest, _EXITS[outcome])
        why = {} if cause is None else cause._asdict()
        record = {"url": url, "input": url if given is None else given, "outcome": outcome, **why, **more}
        _append(self._out, record)
        if self._journal is not None:
            # Afterwards: a kill in between repeats a record, and loses none.
            _append(self._journal, {name: record[name] for name in _OF_JOURNAL if name in record})


def _append(file: TextIO, record: Record) -> None:
    file.write(json.dumps(record) + "\n")
    file.flush()


def of_page(page: Page, *, fetched_at: float, file: str | None) -> Record:
    """Return the fields of a record that describe a page."""
    return {
        "status": page.status,
        "headers": {
            name: value[:_LONGEST_FIELD] for name in _COPIED_FIELDS if (value := page.field(name)) is not None
        },
        "length": len(page.body),
        "sha256": digest(page.body),
        "body": None if page.end in (None, BodyEnd.COMPLETE) else page.end.name.lower().replace("_", " "),
        "fetched_at": datetime.fromtimestamp(fetched_at, UTC).isoformat(timespec="milliseconds"),
        "file": file,
    }


def digest(body: bytes) -> str:
    """Return the SHA-256 digest in hexadecimal."""
    return hashlib.sha256(body).hexdigest()


def reopen(path: Path, *, retry: bool = False) -> tuple[TextIO, dict[str, str]]:
    """Open records for appending. Return the file, and outcomes by URL of its last records, if their URLs were to be fetched.

    With `retry`, those that were not fetched are left out: they get another record.

    An incomplete last record is removed. Raises OSError, and InvalidOption for a file that has other content,
    which is not changed.
    """
    recorded: dict[str, str] = {}
    if is_begun(path):
        recorded, whole = _last_records(path)
        if whole < path.stat().st_size:
            os.truncate(path, whole)
    kept = {url: outcome for url, outcome in recorded.items() if not retry or outcome not in UNDONE}
    return path.open("a", encoding="utf-8"), kept


def _last_records(path: Path) -> tuple[dict[str, str], int]:
    """Return the URLs of the last records, and the offset where the last one ends. Raises OSError, InvalidOption."""
    with path.open("rb") as file:
        if not _is_prefix(file.read(len(_BEGINNING))):
            raise _not_records(path, 0)
        at = max(0, file.seek(0, io.SEEK_END) - _TAIL)
        file.seek(at)
        *lines, rest = file.read(_TAIL).split(b"\n")
    if at:
        if not lines:
            raise _not_records(path, at)
        at += len(lines.pop(0)) + 1  # its start was not read
    urls = {}
    for line in lines:
        found = _url(line)
        if found is None:
            raise _not_records(path, at)
        url, outcome = found
        if outcome not in _OF_LINES:
            urls[url] = outcome
        at += len(line) + 1
    if not _may_be_incomplete(rest):
        raise _not_records(path, at)
    return urls, at


def _url(line: bytes) -> tuple[str, str] | None:
    """Return the URL and the outcome of a record, or None if the line is not a record."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match record:
        case {"url": str(url), "outcome": str(outcome)} if outcome in _EXITS:
            return url, outcome
        case _:
            return None


def _may_be_incomplete(rest: bytes) -> bool:
    """Whether `rest` may be an incomplete record: empty, a prefix of one, or one without its line end."""
    try:
        _, end = json.JSONDecoder().raw_decode(rest.decode("ascii"))
    except (ValueError, RecursionError):
        return _is_prefix(rest)
    return end == len(rest) and _url(rest) is not None


def _is_prefix(octets: bytes) -> bool:
    return octets.isascii() and octets[: len(_BEGINNING)] == _BEGINNING[: len(octets)]


def _not_records(path: Path, at: int) -> InvalidOption:
    return InvalidOption(
        f"{path}: octet {at} does not start a record of polite fetch; the file was not changed"
    )


def is_begun(path: Path) -> bool:
    """Whether the file has content already."""
    return path.exists() and path.stat().st_size > 0
