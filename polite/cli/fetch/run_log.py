"""Receives what the run and the gate's events report, and passes it to records, event log and statistics."""

import asyncio

from polite.cli.fetch import cause
from polite.cli.fetch.cause import Cause
from polite.cli.fetch.event_log import EventLog
from polite.cli.fetch.origin_stats import OriginStats
from polite.cli.fetch.page import Page
from polite.cli.fetch.provenance import Provenance
from polite.cli.fetch.queue_notes import FAILED, FINAL, GIVEN_UP, QueueNotes, kind_of_drop
from polite.cli.fetch.record import Record, Records, of_page
from polite.cli.fetch.repeated_lines import RepeatedLines, name_of_line
from polite.cli.fetch.url_list import ListedURL
from polite.errors import InvalidURL, PoliteError
from polite.events import Dropped, Event, Granted, Refused
from polite.gate.explanation import Explanation
from polite.origin import Target
from polite.ports import Clock
from polite.task import Task


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
                if url not in self.recorded:
                    found = cause.of_refusal(reason, rule)
                    self.records.write(url, "refused", found, line=line, **_origin_of(task))
            case Dropped(url=url, because=because, tries=tries, task=task):
                if task is not None:
                    self.notes.add(task, kind_of_drop(because))
                if url not in self.recorded:
                    found = cause.of_drop(because)
                    self.records.write(url, "given up", found, tries=tries, **_origin_of(task))


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
        self._source = _origin_of(task)
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
        self._run_log.records.write(self._task.url, outcome, self.cause, **self.fields, **self._source)

    def record_fetched(self, page: Page, file: str | None, *, given_up: bool) -> None:
        """Record the response. `file` names the file with its body, `given_up` says that a retry might have had another."""
        record = of_page(page, fetched_at=self._began_wall, file=file)
        outcome = "given up" if given_up else "fetched"
        if given_up:
            self._run_log.notes.add(self._task, GIVEN_UP)
        else:
            self._run_log.notes.remove(self._task)
        found = cause.of_status(page.status) if given_up else self.cause
        self._run_log.records.write(self._task.url, outcome, found, **record, **self.fields, **self._source)
