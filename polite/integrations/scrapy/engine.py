"""The private parts of Scrapy's engine that this needs, and requests that wait until its spider closes."""

import asyncio
import logging
from typing import Any

from polite.errors import GateClosed, redact_url
from polite.gate.gate import Gate
from polite.gate.permit import Permit

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


# How often it is looked whether the spider is closing (seconds).
_LOOK_S = 0.5


class WaitingRequests:
    """Gives requests a permit each. Media pipelines may have thousands that wait, so one timer looks for all of them.

    Scrapy has no signal for a spider that begins to close, and its end would wait for these requests.
    """

    def __init__(self, engine: EngineSlot) -> None:
        self._engine = engine
        self._waiting: set[asyncio.Task[Permit]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, gate: Gate, url: str) -> Permit:
        """Return a permit in its turn. Raises what `gate.acquire` raises, and GateClosed if the spider closes."""
        waiting = asyncio.ensure_future(gate.acquire(url))
        self._waiting.add(waiting)
        self._set_timer()
        try:
            await asyncio.wait({waiting})
        except BaseException:
            waiting.cancel()
            waiting.add_done_callback(_give_back)
            raise
        finally:
            self._waiting.discard(waiting)
        if waiting.cancelled():
            raise GateClosed(f"{redact_url(url)}: the spider is closing")
        return waiting.result()

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._engine.closing:
            for waiting in self._waiting:
                waiting.cancel()
        elif self._waiting:
            self._set_timer()


def _give_back(waiting: asyncio.Task[Permit]) -> None:
    """Give back a turn that came in the step in which its request was cancelled."""
    if not waiting.cancelled() and waiting.exception() is None:
        waiting.result().unsent()
