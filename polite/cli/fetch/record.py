"""What becomes of each URL: its record, its note in the queue, and its line in the log."""

import asyncio
import io
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import aiohttp

from polite.cli.fetch.page import AddressBlocked, NoFinalResponse, Page
from polite.cli.fetch.progress import OriginStats, words_of
from polite.cli.fetch.queue_file import QueueNotes, kind_of_drop
from polite.cli.stdin import ListedURL
from polite.cli.terminal import Exit, spelled
from polite.errors import InvalidOption, PoliteError
from polite.events import BackedOff, Dropped, Event, Granted, OriginPostponed, Refused, RobotsFetched
from polite.integrations.aiohttp import ConnectionLost
from polite.origin import Origin, Target
from polite.ports import Clock
from polite.robots.exchange import BodyEnd
from polite.robots.reason import Reason
from polite.task import Task
from polite.transports.http import reason_of_error

ROBOTS = "ROBOTS_"
_LONGEST_DETAIL = 500
# Their words say little; aiohttp's say more.
_VAGUE = frozenset({Reason.CONNECT_FAILED, Reason.DNS_FAILURE, Reason.PROTOCOL_ERROR, Reason.TLS_FAILURE})
NO_CONNECTION = "the site gave no connection for "
_TRIES = "max_tries="
# How the frontier names why it dropped a URL, if robots.txt is not the reason.
_DROPS = {
    NO_CONNECTION: "MAX_OUTAGE",
    "PacingPolicy.max_pages=": "MAX_PAGES",
    "PacingPolicy.max_bytes=": "MAX_ORIGIN_BYTES",
    "PacingPolicy.max_failures=": "MAX_FAILURES",
    "PacingPolicy.max_crawl_delay=": "LONG_DELAY",
    "the server asks for ": "PAGE_DEMAND",
}


class Cause(NamedTuple):
    """Why a URL has no page.

    Attributes:
        code: for programs. It does not change.
        detail: for people.
    """

    code: str
    detail: str


def of_drop(because: str) -> Cause:
    """Return why the frontier dropped the URL."""
    if because in Reason.__members__:
        why = f"{words_of(because)}; robots.txt is unreachable, so no page was requested"
        return Cause(f"{ROBOTS}{because}", why)
    if because.startswith(_TRIES):
        times = because.removeprefix(_TRIES)
        return Cause("MAX_TRIES", f"{times} attempts, those of interrupted and killed runs included")
    codes = (code for start, code in _DROPS.items() if because.startswith(start))
    return Cause(next(codes, "NO_TURN"), spelled(because))


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
    return Cause(f"PAGE_{reason.name}", f"{spelled(text)[:_LONGEST_DETAIL]}; the page was not fetched")


Record = dict[str, Any]


def source_of(payload: object) -> Record:
    """Return what a task's payload says beside its URL.

    That is `input`, the line or argument as it was given, if it is not the URL; `from`, the URL that redirected to this one;
    and `foreign`, if a redirect led to another origin than the list names. None for most URLs of a list: it costs memory for each.
    """
    return payload if isinstance(payload, dict) else {}


def payload_of_redirect(task: Task, target: Target) -> Record:
    """Return the payload of the target of a redirect."""
    source = source_of(task.payload)
    kept: Record = {"from": task.url}
    if (given := source.get("input", task.url)) != target.url:
        kept["input"] = given
    if source.get("foreign") is True or target.origin != task.origin:
        kept["foreign"] = True
    return kept


# Response fields that are copied into the record, and the limit on the length of each (characters).
_COPIED_FIELDS = (
    *("content-type", "content-encoding", "content-language", "last-modified", "etag", "cache-control"),
    *("robots-tag", "x-robots-tag"),
    # What the site says of the use of the page (`polite.usage`).
    *("content-usage", "content-signal", "tdm-reservation", "tdm-policy"),
    # What it asks for instead of the page: a price, or a licence.
    *("crawler-price", "www-authenticate"),
)
_LONGEST_FIELD = 1_000
# When a run is resumed, only this many octets at the end of a file are read: of records, some ten thousand. Those that a killed
# run wrote before the frontier finished their tasks are the very last ones.
_TAIL = 8 * 1024 * 1024
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


def of_page(page: Page, *, fetched_at: float, file: str | None) -> Record:
    """Return the fields of a record that describe a page."""
    return {
        "status": page.status,
        "headers": {
            name: value[:_LONGEST_FIELD] for name in _COPIED_FIELDS if (value := page.field(name)) is not None
        },
        "length": len(page.body),
        "sha256": sha256(page.body).hexdigest(),
        "body": None if page.end in (None, BodyEnd.COMPLETE) else page.end.name.lower().replace("_", " "),
        "fetched_at": datetime.fromtimestamp(fetched_at, UTC).isoformat(timespec="milliseconds"),
        "file": file,
    } | ({} if page.refusal is None else {"refusal": page.refusal})


def reopen(path: Path, *, retry: bool = False) -> tuple[TextIO, dict[str, str]]:
    """Open records for appending. Return the file, and outcomes by URL of its last records, if their URLs were to be fetched.

    With `retry`, those that were not fetched are left out: they get another record.

    Raises as `reopen_lines`.
    """
    recorded: dict[str, str] = {}

    def is_record(line: bytes) -> bool:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return False
        match record:
            case {"url": str(url), "outcome": str(outcome)} if outcome in _EXITS:
                if outcome not in _OF_LINES and not (retry and outcome in UNDONE):
                    recorded[url] = outcome
                return True
            case _:
                return False

    return reopen_lines(path, b'{"url": "', is_record, "a record of polite fetch"), recorded


def reopen_lines(path: Path, beginning: bytes, is_line: Callable[[bytes], bool], what: str) -> TextIO:
    """Open a file of lines for appending. An incomplete last line, as a killed run leaves it, is removed.

    Args:
        beginning: what each line begins with.
        is_line: whether a whole line of the last octets is `what`.

    Raises OSError, and InvalidOption for a file that has other content, which is not changed.
    """
    if not is_begun(path):
        return path.open("a", encoding="utf-8")
    with path.open("rb") as file:
        first = file.read(len(beginning))
        at = max(0, file.seek(0, io.SEEK_END) - _TAIL)
        file.seek(at)
        *lines, rest = file.read(_TAIL).split(b"\n")
    wrong = None if beginning.startswith(first) else 0
    if at and lines:
        at += len(lines.pop(0)) + 1  # its start was not read
    for line in lines:
        if wrong is None and not is_line(line):
            wrong = at
        at += len(line) + 1
    if wrong is None and rest[: len(beginning)] != beginning[: len(rest)]:
        wrong = at
    if wrong is not None:
        raise InvalidOption(f"{path}: octet {wrong} does not start {what}; the file was not changed")
    os.truncate(path, at)
    return path.open("a", encoding="utf-8")


def is_begun(path: Path) -> bool:
    """Whether the file has content already."""
    return path.exists() and path.stat().st_size > 0


# With these reasons nothing was sent to the site.
_NOT_SENT = (Reason.ADDRESS_REFUSED, Reason.PROXY_REFUSED, Reason.SCHEME_UNKNOWN)
_UNASKED = frozenset(each.name for each in Reason if each.name.startswith("DNS_") or each in _NOT_SENT)


def reopen_log(path: Path) -> TextIO:
    """Open a log for appending. Raises as `reopen_lines`."""
    beginning = b'{"t": '
    return reopen_lines(
        path, beginning, lambda line: line.startswith(beginning), "a line of a log of polite fetch"
    )


_TABLE = """
    CREATE TABLE lines (
        digest BLOB PRIMARY KEY, met INTEGER NOT NULL DEFAULT 0, recorded INTEGER NOT NULL DEFAULT 0,
        redirected INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID
"""
_COUNT = "INSERT INTO lines (digest, {0}) VALUES (?, 1) ON CONFLICT (digest) DO UPDATE SET {0} = {0} + 1 RETURNING met"
# The limit on a record that is read again, in octets: it has a URL and its line, and some short fields.
_LONGEST = 8 * 1024 * 1024
# What such records contain. Most have none of these: to load each would take minutes.
_MARKS = (b'"outcome": "invalid"', b'"outcome": "duplicate"', b'"from": ')


class RepeatedLines:
    """Counts the lines of this run, and the records of earlier ones, by what equal lines have in common.

    That is an outcome and a text: of an invalid line the line, of a duplicate one the URL. A list has no bound, so the counts are
    in a temporary file of SQLite, which it deletes itself; a few MiB are in memory.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        # Nothing here outlives the process.
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute(_TABLE)

    def read(self, path: Path) -> None:
        """Take in all records of earlier runs. Raises OSError."""
        with path.open("rb") as file:
            while line := file.readline(_LONGEST):
                if not any(mark in line for mark in _MARKS):
                    continue
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                match record:
                    case {"outcome": "duplicate", "url": str(url)}:
                        self._count("recorded", "duplicate", url)
                    case {"outcome": "invalid", "url": str(url), **more}:
                        self._count("recorded", "invalid", str(more.get("input", url)))
                    case {"from": str(), "url": str(url)}:
                        self.add_redirected(url)
                    case _:
                        pass

    def add_redirected(self, url: str) -> None:
        """Note that a redirect put the URL first: no line has the record of its request."""
        self._count("redirected", "duplicate", url)

    def meet(self, outcome: str, text: str) -> int:
        """Count a line. Return how many lines of this run named the same so far."""
        return self._count("met", outcome, text)

    def has_record(self, outcome: str, text: str, met: int) -> bool:
        """Whether earlier runs recorded as many lines with this outcome and text as were met."""
        query = "SELECT recorded, redirected FROM lines WHERE digest = ?"
        recorded, redirected = self._file.execute(query, (_digest(outcome, text),)).fetchone()
        # The queue had the URL of a duplicate before. Unless a redirect put it, a line did, which the request's record names.
        by_task = outcome == "duplicate" and not redirected
        return bool(met <= recorded + by_task)

    def close(self) -> None:
        """Delete the counts."""
        self._file.close()

    def _count(self, column: str, outcome: str, text: str) -> int:
        (met,) = self._file.execute(_COUNT.format(column), (_digest(outcome, text),)).fetchone()
        return int(met)


def _digest(outcome: str, text: str) -> bytes:
    return blake2b(f"{outcome}\n{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(slots=True)
class RunLog:
    """Writes records and the log, and listens to the gate. Must be made while an event loop runs.

    Each line of the log has `t`, the seconds since the run began, and `event`:

    - `run`: a run begins; `at` is its Unix time.
    - `request`: a page was requested at `t`; `status` is null if there was no response. `asked` is false if no server was
      asked: the name has no address, or its address is blocked.
    - `robots`: a robots.txt was fetched; `asked` as for `request`.
    - `refused`, `slowed`, `put off`: the events Refused, BackedOff and OriginPostponed.

    Args:
        out: the file of records.
        journal: receives the fields of each record that a later run needs, if it cannot read `out`: that is standard output.
        recorded: the URLs of the last records of an earlier run, with their outcomes; they are not recorded again.
        repeated: the lines of lists.

    Attributes:
        began: monotonic time.
        gravest: the exit status so far.
        counts: the number of URLs for each outcome.
        parts: how many of them have what the summary says of some: see `RunStatus.totals`.
        notes: keeps the URLs that are not fetched.
        skipped: how many pages were not requested because they are recorded.
        waited: how long the URLs in flight waited for their turns (seconds).
        failure: raises the first OSError of a listener call, since a listener must not raise.
    """

    out: TextIO
    journal: TextIO | None
    recorded: dict[str, str]
    repeated: RepeatedLines
    origin_stats: OriginStats
    log: TextIO | None
    clock: Clock
    began: float = field(init=False)
    gravest: Exit = field(default=Exit.ALLOWED, init=False)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_EXITS, 0), init=False)
    parts: Counter[str] = field(default_factory=Counter, init=False)
    notes: QueueNotes = field(default_factory=QueueNotes, init=False)
    skipped: int = field(default=0, init=False)
    waited: dict[str, float] = field(default_factory=dict, init=False)
    failure: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future(), init=False
    )

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()
        self.log_event("run", self.began, at=self.clock.wall())

    def __call__(self, event: Event, /) -> None:
        now = self.clock.monotonic()
        self.origin_stats.observe(event, now)
        try:
            match event:
                case Granted(url=url, waited_s=waited_s):
                    self.waited[url] = waited_s
                case RobotsFetched(origin=origin, outcome=outcome, status=status, reason=reason, hops=hops):
                    asked = bool(hops) or reason not in _UNASKED
                    self.log_event("robots", now, origin=origin, outcome=outcome, status=status, asked=asked)
                case BackedOff(origin=origin, status=status, pause_s=pause_s):
                    self.log_event("slowed", now, origin=origin, status=status, for_s=pause_s)
                case OriginPostponed(origin=origin, for_s=for_s, because=because):
                    self.log_event("put off", now, origin=origin, for_s=for_s, because=because)
                case Refused(url=url, reason=reason, line=line, task=task, rule=rule):
                    self.log_event("refused", now, origin=str(Origin.of(url)), url=url, reason=reason)
                    if task is not None:
                        self.notes.remove(task)  # what robots.txt disallows is final
                    why = Cause(reason, Reason[reason].value if rule is None else rule)
                    self.record(url, "refused", why, task, {"line": line})
                case Dropped(url=url, because=because, tries=tries, task=task):
                    if task is not None:
                        self.notes.add(task, kind_of_drop(because))
                    self.record(url, "given up", of_drop(because), task, {"tries": tries})
        except OSError as error:
            self.fail(error)

    def log_event(self, event: str, now: float, **more: object) -> None:
        """Write a line to the log. `now` is monotonic. Raises OSError."""
        if self.log is not None:
            _append(self.log, {"t": round(now - self.began, 4), "event": event, **more})

    def fail(self, error: OSError | PoliteError) -> None:
        """End the run with an error, unless it ends with an earlier one."""
        if not self.failure.done():
            self.failure.set_exception(error)

    def record(self, url: str, outcome: str, why: Cause | None, task: Task | None, more: Record) -> None:
        """Record the end of a URL, unless an earlier run recorded it, which was killed or whose retry was interrupted.

        A record that it was not fetched does not count if it has ended in another way since. Raises OSError.
        """
        before = self.recorded.get(url)
        if before == outcome:
            self.gravest = max(self.gravest, _EXITS[outcome])
        elif before is None or before in UNDONE:
            source = source_of(None if task is None else task.payload)
            redirected = {"from": source["from"]} if "from" in source else {}
            self._write(url, source.get("input"), outcome, why, {**more, **redirected})

    def record_line(self, url: str, outcome: str, why: Cause | None, listed: ListedURL, met: int) -> None:
        """Record a line that is invalid or a duplicate, unless an earlier run did. Raises OSError.

        `met`: how many lines of this run named the same so far, this one included.
        """
        if not self.repeated.has_record(outcome, listed.given if outcome == "invalid" else url, met):
            place = {} if listed.at is None else {"input_at": listed.at}
            self._write(url, listed.given, outcome, why, place)

    def _write(self, url: str, given: str | None, outcome: str, cause: Cause | None, more: Record) -> None:
        self.counts[outcome] += 1
        self.gravest = max(self.gravest, _EXITS[outcome])
        error_page = outcome == "fetched" and more["status"] >= _LEAST_ERROR
        of_robots = outcome == "given up" and cause is not None and cause.code.startswith(ROBOTS)
        self.parts[outcome] += error_page or of_robots
        why = {} if cause is None else cause._asdict()
        record = {"url": url, "input": url if given is None else given, "outcome": outcome, **why, **more}
        _append(self.out, record)
        if self.journal is not None:
            # Afterwards: a kill in between repeats a record, and loses none.
            _append(self.journal, {name: record[name] for name in _OF_JOURNAL if name in record})


def _append(file: TextIO, record: Record) -> None:
    file.write(json.dumps(record) + "\n")
    file.flush()
