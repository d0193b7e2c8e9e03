"""What became of a crawler's requests, in Scrapy's stats: `polite/...`."""

from typing import Any

from polite.errors import PoliteError
from polite.events import BackedOff, CircuitOpened, Event, RobotsFetched


class Ledger:
    """Counts in the stats of a crawler.

    polite/granted            requests that got their turn
    polite/unsent             turns given back, since another middleware answered or dropped the request
    polite/denied             requests that got IgnoreRequest; also by the name of polite's error, polite/denied/Disallowed
    polite/left_in_queue      requests that waited in memory when the crawl ended: they were not sent
    polite/robots_fetched     fetches of robots.txt; also by outcome, polite/robots_fetched/found
    polite/backed_off         refusals by servers; also by status, polite/backed_off/429
    polite/circuits_opened    origins that failed too often

    The last three are those of the gate, also for other crawlers that share it.
    """

    def __init__(self, stats: Any) -> None:  # noqa: ANN401 - Scrapy's StatsCollector
        self._stats = stats

    def granted(self) -> None:
        self._stats.inc_value("polite/granted")

    def unsent(self) -> None:
        self._stats.inc_value("polite/unsent")

    def denied(self, error: PoliteError) -> None:
        self._stats.inc_value("polite/denied")
        self._stats.inc_value(f"polite/denied/{type(error).__name__}")

    def left_in_queue(self, requests: int) -> None:
        if requests:
            self._stats.inc_value("polite/left_in_queue", requests)

    def event(self, event: Event) -> None:
        """Count an event of the gate."""
        match event:
            case RobotsFetched():
                self._stats.inc_value("polite/robots_fetched")
                self._stats.inc_value(f"polite/robots_fetched/{event.outcome}")
            case BackedOff():
                self._stats.inc_value("polite/backed_off")
                self._stats.inc_value(f"polite/backed_off/{event.status}")
            case CircuitOpened():
                self._stats.inc_value("polite/circuits_opened")
