"""What a run writes down: records, the log, and the ledger of origins; told by the run, and by the gate as its listener."""

import asyncio

from polite.cli.fetch.event_log import Journal
from polite.cli.fetch.origin_stats import Ledger
from polite.cli.fetch.page import Page
from polite.cli.fetch.record import Record, Records, of_page
from polite.errors import InvalidURL
from polite.events import Dropped, Event, Granted, Refused
from polite.gate.explanation import Explanation
from polite.origin import Target
from polite.ports import Clock
from polite.task import Task


class Notes:
    """Made where an event loop runs. `recorded`: the URLs that the last records of an earlier run are about.

    `failure` has what could not be written down while the gate told of it: a listener must not raise.
    """

    def __init__(
        self, records: Records, recorded: set[str], ledger: Ledger, journal: Journal | None, clock: Clock
    ) -> None:
        self.records = records
        self.recorded = recorded
        self.ledger = ledger
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.journal = journal
        self.clock = clock
        self._waited: dict[str, float] = {}

    def __call__(self, event: Event, /) -> None:
        self.ledger.heard(event, self.clock.monotonic())
        try:
            if self.journal is not None:
                self.journal(event)
            self._record(event)
        except OSError as error:
            if not self.failure.done():
                self.failure.set_exception(error)

    def invalid(self, error: InvalidURL) -> None:
        """A line of the list is no URL to fetch. Raises OSError."""
        url = error.url or ""
        if url not in self.recorded:
            self.records.write(url, "invalid", reason=error.reason)

    def visit(self, task: Task) -> "Visit":
        """A page is about to be asked for."""
        return Visit(self, task, self._waited.pop(task.url, 0.0))

    def explained(self, explanation: Explanation) -> None:
        """How long an origin rests."""
        self.ledger.explained(explanation, self.clock.monotonic())

    def ended(self, target: Target) -> None:
        """A request is over."""
        self._waited.pop(target.url, None)
        self.ledger.ended(target)

    def _record(self, event: Event) -> None:
        match event:
            case Granted(url=url, waited_s=waited_s):
                self._waited[url] = waited_s
            case Refused(url=url, reason=reason, line=line) if url not in self.recorded:
                self.records.write(url, "refused", reason=reason, line=line)
            case Dropped(url=url, because=because, tries=tries) if url not in self.recorded:
                self.records.write(url, "given up", reason=because, tries=tries)


class Visit:
    """One try of one page, and what its record will say. Its methods raise OSError."""

    def __init__(self, notes: Notes, task: Task, waited_s: float) -> None:
        self.told: Record = {"waited_s": round(waited_s, 3), "tries": task.tries + 1}
        if task.payload is not None:
            self.told["from"] = task.payload
        self._notes = notes
        self._task = task
        self._began = notes.clock.monotonic()
        self._began_wall = notes.clock.wall()

    def requested(self, page: Page | None) -> None:
        """This came, or no answer."""
        if self._notes.journal is not None:
            status = None if page is None else page.status
            self._notes.journal.requested(self._task.origin, self._task.url, at=self._began, status=status)

    def failed(self) -> None:
        """It was the last try."""
        self._notes.records.write(self._task.url, "failed", **self.told)

    def fetched(self, page: Page, file: str | None) -> None:
        """There is an answer, and its body lies in `file`."""
        record = of_page(page, fetched_at=self._began_wall, file=file)
        self._notes.records.write(self._task.url, "fetched", **record, **self.told)
