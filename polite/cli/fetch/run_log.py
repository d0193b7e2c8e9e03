"""Receives what the run and the gate's events report, and passes it to records, event log and statistics."""

import asyncio
import io
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

from polite.cli import stdin
from polite.cli.fetch import record as cause
from polite.cli.fetch.page import Page
from polite.cli.fetch.progress import OriginStats
from polite.cli.fetch.queue_notes import FAILED, FINAL, GIVEN_UP, QueueNotes, kind_of_drop
from polite.cli.fetch.record import (
    UNDONE,
    Cause,
    Provenance,
    Record,
    Records,
    RepeatedLines,
    name_of_line,
    of_page,
)
from polite.cli.options import FEW, agent_needed
from polite.cli.stdin import as_given, is_comment, parse_line
from polite.errors import InvalidOption, InvalidURL, PoliteError, without_credentials
from polite.events import BackedOff, Dropped, Event, Granted, OriginPostponed, Refused, RobotsFetched
from polite.gate.explanation import Explanation
from polite.origin import Origin, Target
from polite.ports import Clock
from polite.robots.reason import Reason
from polite.task import Task

# The start of each line, and the limit on its length in octets.
_BEGINNING = b'{"t": '
_LONGEST_LINE = 1 << 20
# With these reasons nothing was sent to the site.
_UNASKED = frozenset(
    reason.name
    for reason in Reason
    if reason.name.startswith("DNS_")
    or reason in (Reason.ADDRESS_REFUSED, Reason.PROXY_REFUSED, Reason.SCHEME_UNKNOWN)
)


def reopen(path: Path) -> TextIO:
    """Open a log for appending. An incomplete last line, as a killed run leaves it, is removed.

    Raises OSError, and InvalidOption for a file that is not a log, which is not changed.
    """
    if path.is_file():
        with path.open("rb") as file:
            first = file.read(len(_BEGINNING))
            at = max(0, file.seek(0, io.SEEK_END) - _LONGEST_LINE)
            file.seek(at)
            tail = file.read(_LONGEST_LINE)
        whole = tail.rfind(b"\n") + 1
        if not (_is_prefix(first) and _is_prefix(tail[whole:])) or (at and not whole):
            raise InvalidOption(f"--log: {path} is not a log of polite fetch; it was not changed")
        if whole < len(tail):
            os.truncate(path, at + whole)
    return path.open("a", encoding="utf-8")


def _is_prefix(octets: bytes) -> bool:
    return octets[: len(_BEGINNING)] == _BEGINNING[: len(octets)]


class EventLog:
    """A listener of the gate that writes the log. Each line has `t`, the seconds since the run began, and `event`:

    - `run`: a run begins; `at` is its Unix time.
    - `request`: a page was requested at `t`; `status` is null if there was no response. `asked` is false if no server was
      asked: the name has no address, or its address is blocked.
    - `robots`: a robots.txt was fetched; `asked` as for `request`.
    - `refused`, `slowed`, `put off`: the events Refused, BackedOff and OriginPostponed.

    Args:
        now: returns monotonic seconds.
        wall: the Unix time at the start of the run.
    """

    def __init__(self, out: TextIO, now: Callable[[], float], *, wall: float) -> None:
        self._out = out
        self._now = now
        self._began = now()
        self._write("run", t=0.0, at=wall)

    def write_request(
        self, origin: Origin, url: str, *, at: float, status: int | None, asked: bool = True
    ) -> None:
        """Log a page request. `at` is monotonic, `status` is None if there was no response. Raises OSError."""
        self._write("request", t=at - self._began, origin=str(origin), url=url, status=status, asked=asked)

    def __call__(self, event: Event, /) -> None:
        """Raises OSError."""
        t = self._now() - self._began
        match event:
            case RobotsFetched(origin=origin, outcome=outcome, status=status, reason=reason, hops=hops):
                asked = bool(hops) or reason not in _UNASKED
                self._write("robots", t=t, origin=origin, outcome=outcome, status=status, asked=asked)
            case Refused(url=url, reason=reason):
                self._write("refused", t=t, origin=str(Origin.of(url)), url=url, reason=reason)
            case BackedOff(origin=origin, status=status, pause_s=pause_s):
                self._write("slowed", t=t, origin=origin, status=status, for_s=pause_s)
            case OriginPostponed(origin=origin, for_s=for_s, because=because):
                self._write("put off", t=t, origin=origin, for_s=for_s, because=because)
            case _:
                pass

    def _write(self, event: str, *, t: float, **more: object) -> None:
        self._out.write(json.dumps({"t": round(t, 4), "event": event, **more}) + "\n")
        self._out.flush()


STANDARD_INPUT = "-"
# Characters of a line that no URL can be. The others are kept whole.
_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class ListedURL:
    """One URL to fetch.

    Attributes:
        url: as it is parsed, or what is wrong with the line.
        given: the line or the argument as it was given, without credentials.
        at: the list and the line, such as `urls.txt:12`; None for an argument.
    """

    url: str | InvalidURL
    given: str
    at: str | None = None


async def read(
    arguments: Iterable[str], lists: Iterable[str] = (), *, few: int | None = None
) -> AsyncGenerator[ListedURL, None]:
    """Yield the URLs of a command line, then those of the files `lists`.

    `-` stands for standard input, read as it arrives; blank lines and comments are left out.

    Raises OSError, and InvalidOption after `few` URLs.
    """
    sources = chain(
        map(_argument, arguments), (_lines(name, partial(stdin.file_batches, name)) for name in lists)
    )
    count = 0
    for source in sources:
        async with aclosing(source) as listed:
            async for each in listed:
                count += 1
                if few is not None and count > few:
                    raise more_than_few()
                yield each


def are_few(few: int, arguments: Iterable[str], lists: Iterable[str]) -> bool:
    """Whether these are at most `few` URLs. Only `read` counts what can be read only once. Raises OSError."""
    files = (stdin.file_batches(name) for name in lists if Path(name).is_file())
    lines = (line for batches in files for batch in batches for line in batch if not is_comment(line))
    urls = (argument for argument in arguments if argument != STANDARD_INPUT)
    return next(islice(chain(urls, lines), few, None), None) is None


def more_than_few() -> InvalidOption:
    """Return the error of a list that is too long for a crawler without a name."""
    return agent_needed(f"polite fetch of more than {FEW} URLs")


async def _argument(argument: str) -> AsyncGenerator[ListedURL, None]:
    if argument != STANDARD_INPUT:
        yield ListedURL(argument, without_credentials(argument))
        return
    async with aclosing(_lines("standard input", stdin.line_batches)) as listed:
        async for each in listed:
            yield each


async def _lines(name: str, source: Callable[[], Iterator[list[bytes]]]) -> AsyncGenerator[ListedURL, None]:
    number = 0
    async with aclosing(stdin.in_thread(source())) as batches:
        async for batch in batches:
            for line in batch:
                number += 1
                if not is_comment(line):
                    yield _listed(line, f"{name}:{number}")


def _listed(line: bytes, at: str) -> ListedURL:
    given = as_given(line)
    if len(line) > stdin.LONGEST_LINE:
        given = f"{given[:_SHOWN]}..."
    return ListedURL(parse_line(line), without_credentials(given), at)


class RunLog:
    """A listener of the gate. Must be made while an event loop runs.

    Attributes:
        recorded: the URLs of the last records of an earlier run, with their outcomes; they are not recorded again.
        notes: keeps the URLs that are not fetched.
        skipped: how many pages were not requested because they are recorded.
        repeated: the lines of lists, if an earlier run may have read them; None if each line is new.
        failure: raises the first OSError of a listener call, since a listener must not raise.
    """

    def __init__(
        self,
        records: Records,
        recorded: dict[str, str],
        origin_stats: OriginStats,
        event_log: EventLog | None,
        clock: Clock,
        repeated: RepeatedLines | None = None,
    ) -> None:
        self.records = records
        self.repeated = repeated
        self.recorded = recorded
        self.skipped = 0
        self.notes: QueueNotes = QueueNotes()
        self.origin_stats = origin_stats
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.event_log = event_log
        self.clock = clock
        self._waited: dict[str, float] = {}

    def __call__(self, event: Event, /) -> None:
        self.origin_stats.observe(event, self.clock.monotonic())
        try:
            if self.event_log is not None:
                self.event_log(event)
            self._record(event)
        except OSError as error:
            self.fail(error)

    def fail(self, error: OSError | PoliteError) -> None:
        """End the run with an error, unless it ends with an earlier one."""
        if not self.failure.done():
            self.failure.set_exception(error)

    def record_invalid(self, listed: ListedURL, error: InvalidURL) -> None:
        """Record a line of the list that is not a URL to fetch. Raises OSError."""
        if self.repeated is not None:
            name = name_of_line("invalid", listed.given)
            if self.repeated.has_record(name, self.repeated.meet(name), by_task=False):
                return
        self.records.write(
            error.url or "", "invalid", cause.of_line(error), given=listed.given, **_place(listed)
        )

    def record(self, url: str, outcome: str, found: Cause | None, task: Task | None, more: Record) -> None:
        """Record the end of a URL, unless an earlier run recorded it, which was killed or whose retry was interrupted.

        A record that it was not fetched does not count if it has ended in another way since. Raises OSError.
        """
        before = self.recorded.get(url)
        if before == outcome:
            self.records.count_exit(outcome)
        elif before is None or before in UNDONE:
            self.records.write(url, outcome, found, **more, **_origin_of(task))

    def meet(self, target: Target) -> int:
        """Count a line of the list, in its order. Return how many lines of this run named the URL so far."""
        return 0 if self.repeated is None else self.repeated.meet(name_of_line("duplicate", target.url))

    def add_redirected(self, target: Target) -> None:
        """Note that a redirect put a URL: its record is not that of a line."""
        if self.repeated is not None:
            self.repeated.add_redirected(target.url)

    def record_duplicate(self, listed: ListedURL, target: Target, met: int) -> None:
        """Record a line whose URL an earlier line or a redirect named, unless an earlier run did. Raises OSError."""
        name = name_of_line("duplicate", target.url)
        if self.repeated is None or not self.repeated.has_record(name, met, by_task=True):
            self.records.write(target.url, "duplicate", given=listed.given, **_place(listed))

    def start_attempt(self, task: Task) -> "Attempt":
        """Return the attempt that is about to request the task's page."""
        return Attempt(self, task, self._waited.pop(task.url, 0.0))

    def update_delay(self, explanation: Explanation) -> None:
        """Take over the current delay of an origin."""
        self.origin_stats.update_delay(explanation, self.clock.monotonic())

    def finish(self, target: Target, *, sent: bool) -> None:
        """Count the end of a request; `sent`: whether there was one."""
        self._waited.pop(target.url, None)
        self.origin_stats.finish(target, sent=sent)

    def _record(self, event: Event) -> None:
        match event:
            case Granted(url=url, waited_s=waited_s):
                self._waited[url] = waited_s
            case Refused(url=url, reason=reason, line=line, task=task, rule=rule):
                if task is not None:
                    self.notes.remove(task)  # what robots.txt disallows is final
                self.record(url, "refused", cause.of_refusal(reason, rule), task, {"line": line})
            case Dropped(url=url, because=because, tries=tries, task=task):
                if task is not None:
                    self.notes.add(task, kind_of_drop(because))
                self.record(url, "given up", cause.of_drop(because), task, {"tries": tries})


def _place(listed: ListedURL) -> Record:
    return {} if listed.at is None else {"input_at": listed.at}


def _origin_of(task: Task | None) -> Record:
    """Return where the task's URL comes from, as arguments of `Records.write`."""
    source = Provenance.of(task)
    redirected = {} if source.redirected_from is None else {"from": source.redirected_from}
    return {"given": source.given, **redirected}


class Attempt:
    """One attempt to fetch a page. Its methods raise OSError.

    Attributes:
        fields: fields of the page's record that are known so far.
        cause: why there is no page, or why its redirect was not followed.
    """

    def __init__(self, run_log: RunLog, task: Task, waited_s: float) -> None:
        self.fields: Record = {"waited_s": round(waited_s, 3), "tries": task.tries + 1}
        self.cause: Cause | None = None
        self._run_log = run_log
        self._task = task
        self._began = run_log.clock.monotonic()
        self._began_wall = run_log.clock.wall()

    def log_request(self, page: Page | None, *, asked: bool = True) -> None:
        """Log the request. `page` is None if there was no response, `asked` False if no server was asked either."""
        event_log = self._run_log.event_log
        if event_log is not None:
            status = None if page is None else page.status
            event_log.write_request(
                self._task.origin, self._task.url, at=self._began, status=status, asked=asked
            )

    def record_failed(self, *, final: bool) -> None:
        """Record that the last attempt got no response. `final`: the same options can get none."""
        self._run_log.notes.add(self._task, FINAL if final else FAILED)
        outcome = "given up" if final else "failed"
        self._run_log.record(self._task.url, outcome, self.cause, self._task, self.fields)

    def record_fetched(self, page: Page, file: str | None, *, given_up: bool) -> None:
        """Record the response. `file` names the file with its body, `given_up` says that a retry might have had another."""
        record = of_page(page, fetched_at=self._began_wall, file=file)
        outcome = "given up" if given_up else "fetched"
        if given_up:
            self._run_log.notes.add(self._task, GIVEN_UP)
        else:
            self._run_log.notes.remove(self._task)
        found = cause.of_status(page.status) if given_up else self.cause
        self._run_log.record(self._task.url, outcome, found, self._task, {**record, **self.fields})
