"""What Scrapy's engine offers to nobody: being woken, saying that it closes, and handlers that send each request once."""

import logging
from typing import Any

log: logging.Logger = logging.getLogger(__name__)

_SCRAPYS = "scrapy.core.downloader.handlers."


class EngineSlot:
    """A crawler's engine, by its private `_slot` and the private parts of its download handlers.

    Without it the engine would look for requests only at its heartbeat, every 5 seconds, a spider that closes would wait for
    requests that wait for their turn, and a lost connection would be a request without a turn. Tests notice if it changes.
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

    def send_nothing_twice(self) -> None:
        """Turn off that a request is sent again at once if its connection was used before and is closed.

        It is an error instead, which Scrapy's RetryMiddleware retries in its turn.
        """
        handlers = self._crawler.engine.downloader.handlers
        for scheme in ("http", "https"):
            handler = handlers._get_handler(scheme)  # noqa: SLF001
            if handler is not None and not _sends_once(handler):
                log.warning(
                    "DOWNLOAD_HANDLERS: %s is not Scrapy's own. What it requests by itself takes no turn and is not checked, "
                    "such as redirects and images in a browser",
                    type(handler).__name__,
                )


def _sends_once(handler: Any) -> bool:  # noqa: ANN401 - a download handler of any kind
    """Turn a handler's silent retry off. Return whether nothing else is sent in silence, as far as is known."""
    pool: Any = getattr(handler, "_pool", None)
    session: Any = getattr(handler, "_session", None)
    if hasattr(pool, "retryAutomatically"):  # Twisted
        pool.retryAutomatically = False
        return True
    if hasattr(session, "_retry_connection"):  # aiohttp
        session._retry_connection = False  # noqa: SLF001
        return True
    return type(handler).__module__.startswith(_SCRAPYS)
