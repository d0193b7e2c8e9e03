"""The records of a run, as JSON lines: one object per URL with its outcome."""

import asyncio
import hashlib
import io
import json
import os
import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import aiohttp

from polite.cli.fetch.page import AddressBlocked, ConnectionLost, NoFinalResponse, Page
from polite.cli.terminal import OPTIONS, Exit, spelled
from polite.errors import InvalidOption, InvalidURL
from polite.origin import Target
from polite.robots.exchange import BodyEnd
from polite.robots.reason import Reason
from polite.task import Task
from polite.transports.http import reason_of_error

ROBOTS = "ROBOTS_"
_PAGE = "PAGE_"
_LONGEST_DETAIL = 500
# Their words say little; aiohttp's say more.
_VAGUE = frozenset({Reason.CONNECT_FAILED, Reason.DNS_FAILURE, Reason.PROTOCOL_ERROR, Reason.TLS_FAILURE})
# How the frontier names why it dropped a URL, if robots.txt is not the reason.
_DROPS = {
    "PacingPolicy.max_pages=": "MAX_PAGES",
    "PacingPolicy.max_bytes=": "MAX_ORIGIN_BYTES",
    "PacingPolicy.max_failures=": "MAX_FAILURES",
    "PacingPolicy.max_crawl_delay=": "LONG_DELAY",
    "max_tries=": "MAX_TRIES",
    "the server asks for ": f"{_PAGE}DEMAND",
}


class Cause(NamedTuple):
    """Why a URL has no page.

    Attributes:
        code: for programs. It does not change.
        detail: for people.
    """

    code: str
    detail: str


def of_line(error: InvalidURL) -> Cause:
    """Return why a line of the list is no URL to fetch."""
    return Cause("INVALID_URL", error.reason)


def of_refusal(reason: str, rule: str | None) -> Cause:
    """Return why robots.txt disallows the URL."""
    return Cause(reason, Reason[reason].value if rule is None else rule)


def of_drop(because: str) -> Cause:
    """Return why the frontier dropped the URL."""
    if because in Reason.__members__:
        return Cause(
            f"{ROBOTS}{because}", f"{words_of(because)}; robots.txt is unreachable, so no page was requested"
        )
    codes = (code for start, code in _DROPS.items() if because.startswith(start))
    return Cause(next(codes, "NO_TURN"), spelled(because))


def words_of(because: str) -> str:
    """Return in words why robots.txt is unreachable, with the option that may change it."""
    reason = Reason.__members__.get(because)
    if reason is None:
        return because
    option = OPTIONS.get(reason.option)
    return reason.value if option is None else f"{reason.value} (see {option})"


def of_error(error: aiohttp.ClientError | TimeoutError, *, timeout_s: float) -> Cause:
    """Return why the last attempt got no response."""
    match error:
        case AddressBlocked():
            reason, text = Reason.ADDRESS_REFUSED, str(error)
        case TimeoutError():
            reason, text = Reason.TIMEOUT, f"no complete response within {timeout_s:g} s (--timeout)"
        case ConnectionLost():
            reason, text = Reason.CONNECTION_LOST, Reason.CONNECTION_LOST.value
        case NoFinalResponse():
            reason, text = Reason.PROTOCOL_ERROR, str(error)
        case _:
            reason = reason_of_error(error)
            text = f"{reason.value} ({error})" if reason in _VAGUE else reason.value
    return Cause(f"{_PAGE}{reason.name}", f"{spelled(text)[:_LONGEST]}; the page was not fetched")


def of_status(status: int) -> Cause:
    """Return why a page with this status was given up."""
    return Cause(f"{_PAGE}STATUS", f"status {status} is retried, and this was the last attempt (--tries)")


def of_redirect(error: InvalidURL) -> Cause:
    """Return why a redirect to this URL was not followed."""
    return Cause(f"{_PAGE}{Reason.REDIRECT_INVALID.name}", f"{error}; the redirect was not followed")


def of_redirects(limit: int) -> Cause:
    """Return why one redirect more was not followed."""
    text = f"more than {limit} redirects (--max-redirects); the last one was not followed"
    return Cause(f"{_PAGE}{Reason.TOO_MANY_REDIRECTS.name}", text)


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a task's record says beside its own URL.

    Attributes:
        given: the line or argument as it was given; None if it is the task's URL.
        redirected_from: the URL that redirected to this one, or None.
        foreign: whether a redirect led to another origin than the list names.
    """

    given: str | None = None
    redirected_from: str | None = None
    foreign: bool = False

    @classmethod
    def of(cls, task: Task | None) -> "Provenance":
        """Return that of a task."""
        return cls() if task is None else cls.of_payload(task.payload)

    @classmethod
    def of_payload(cls, payload: object) -> "Provenance":
        """Return what `payload` kept."""
        match payload:
            case dict(kept):
                given, redirected_from = kept.get("input"), kept.get("from")
                return cls(
                    given if isinstance(given, str) else None,
                    redirected_from if isinstance(redirected_from, str) else None,
                    kept.get("foreign") is True,
                )
            case _:
                return cls()

    def redirected(self, task: Task, target: Target) -> "Provenance":
        """Return that of the target of a redirect."""
        return Provenance(
            task.url if self.given is None else self.given,
            task.url,
            self.foreign or target.origin != task.origin,
        )

    def payload(self, target: Target) -> dict[str, object] | None:
        """Return what the frontier keeps. None for most URLs of a list, since that costs memory for each."""
        kept: dict[str, object] = {}
        if self.given not in (None, target.url):
            kept["input"] = self.given
        if self.redirected_from is not None:
            kept["from"] = self.redirected_from
        if self.foreign:
            kept["foreign"] = True
        return kept or None


_TABLE = """
    CREATE TABLE lines (
        digest BLOB PRIMARY KEY, met INTEGER NOT NULL DEFAULT 0, recorded INTEGER NOT NULL DEFAULT 0,
        redirected INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
"""
_ADD = (
    "INSERT INTO lines (digest, {0}) VALUES (?, 1) ON CONFLICT (digest) DO UPDATE SET {0} = {1} RETURNING met"
)
_MEET, _RECORD = (_ADD.format(name, f"{name} + 1") for name in ("met", "recorded"))
_REDIRECT = _ADD.format("redirected", "1")
_FIND = "SELECT recorded, redirected FROM lines WHERE digest = ?"
_DIGEST_OCTETS = 16
# The limit on a record that is read again, in octets: it has a URL and its line, and some short fields.
_LONGEST = 8 * 1024 * 1024
# What such records contain. Most have none of these: to load each would take minutes.
_MARKS = (b'"outcome": "invalid"', b'"outcome": "duplicate"', b'"from": ')


class RepeatedLines:
    """Counts the lines of this run, and the records of earlier ones, by what they name.

    A list has no bound, so the counts are in a temporary file of SQLite, which it deletes itself; a few MiB are in memory.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        # Nothing here outlives the process.
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(_TABLE)

    def read(self, path: Path) -> None:
        """Take in all records of earlier runs. Raises OSError."""
        if not path.is_file():
            return
        with path.open("rb") as file:
            while line := file.readline(_LONGEST):
                if any(mark in line for mark in _MARKS):
                    self._add(line)

    def add_redirected(self, url: str) -> None:
        """Note that a redirect put the URL first: no line has the record of its request."""
        self._count(_REDIRECT, name_of_line("duplicate", url))

    def meet(self, name: str) -> int:
        """Count a line. Return how many lines of this run named the same so far."""
        return self._count(_MEET, name)

    def has_record(self, name: str, met: int, *, by_task: bool) -> bool:
        """Whether earlier runs recorded as many lines of this name as were met.

        `by_task`: the queue had its URL before this line. Unless a redirect put it, a line did, which the request's record names.
        """
        recorded, redirected = self._file.execute(_FIND, (_digest(name),)).fetchone()
        return bool(met <= recorded + (by_task and not redirected))

    def close(self) -> None:
        """Delete the counts."""
        self._file.close()

    def _add(self, line: bytes) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        match record:
            case {"outcome": "duplicate", "url": str(url)}:
                self._count(_RECORD, name_of_line("duplicate", url))
            case {"outcome": "invalid", "url": str(url), **more}:
                self._count(_RECORD, name_of_line("invalid", str(more.get("input", url))))
            case {"from": str(), "url": str(url)}:
                self.add_redirected(url)
            case _:
                pass

    def _count(self, statement: str, name: str) -> int:
        (met,) = self._file.execute(statement, (_digest(name),)).fetchone()
        return int(met)


def name_of_line(outcome: str, text: str) -> str:
    """Return what equal lines have in common: an invalid one its text, a duplicate one its URL."""
    return f"{outcome}\n{text}"


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_OCTETS).digest()


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
        self.count_exit(outcome)
        why = {} if cause is None else cause._asdict()
        record = {"url": url, "input": url if given is None else given, "outcome": outcome, **why, **more}
        _append(self._out, record)
        if self._journal is not None:
            # Afterwards: a kill in between repeats a record, and loses none.
            _append(self._journal, {name: record[name] for name in _OF_JOURNAL if name in record})

    def count_exit(self, outcome: str) -> None:
        """Let the exit status be that of this outcome, or a graver one."""
        self.gravest = max(self.gravest, _EXITS[outcome])


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


BODIES = "bodies"


class Folder:
    """Stores bodies as `bodies/ab/ab12...` (SHA-256) below `path`. A file gets its name once it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def keep(self, page: Page) -> str | None:
        """Return the file's name relative to the folder, or None for an empty body. Raises OSError."""
        if not page.body:
            return None
        return await asyncio.to_thread(self._write, page.body)

    async def close(self) -> None:
        """Nothing to release."""

    def _write(self, body: bytes) -> str:
        name = digest(body)
        file = self._path / BODIES / name[:2] / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Two tasks may store the same body at the same time.
            unfinished = file.with_name(f"{name}.{os.urandom(8).hex()}.part")
            try:
                unfinished.write_bytes(body)
                unfinished.replace(file)
            finally:
                unfinished.unlink(missing_ok=True)
        return file.relative_to(self._path).as_posix()
