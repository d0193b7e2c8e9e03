"""WaitingRequests: requests that wait for their turn in the middleware, until the spider closes."""

import asyncio

from polite.errors import GateClosed, redact_url
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.integrations.scrapy.engine import EngineSlot

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
