"""The two things that Scrapy's engine offers to nobody: being woken, and saying that it closes."""

from typing import Any


class EngineSlot:
    """A crawler's engine, by its private `_slot`.

    Without it the engine would look for requests only at its heartbeat, every 5 seconds, and a spider that closes would wait for
    requests that wait for their turn. Tests notice if it changes.
    """

    def __init__(self, crawler: Any) -> None:  # noqa: ANN401 - Scrapy's Crawler
        self._crawler = crawler

    def wake(self) -> None:
        """Have the engine ask its scheduler for requests, in the next step of the event loop."""
        slot = getattr(self._crawler.engine, "_slot", None)
        if slot is not None:
            slot.nextcall.schedule()

    @property
    def closing(self) -> bool:
        """Whether the spider is closing or closed."""
        slot = getattr(self._crawler.engine, "_slot", None)
        return slot is None or slot.closing is not None
