"""Exchange: the requests of one page, which are redirect hops and reconnections, and the time that they may take."""

import asyncio
from contextvars import ContextVar
from types import SimpleNamespace

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse


class Exchange:
    """The requests of one page. Its time runs while one of them has its turn.

    Attributes:
        limit: An `asyncio.timeout`.
        response: The latest, None before the first.
    """

    def __init__(self) -> None:
        self.limit: asyncio.Timeout = asyncio.timeout(None)
        self.response: ClientResponse | None = None
        self._left_s: float | None = None
        self._started: float | None = None

    def allow(self, seconds: float | None) -> None:
        """Set how long all requests may take together. None is for ever."""
        self._left_s = seconds

    def resume(self) -> None:
        """A request has its turn."""
        if self._started is None and self._left_s is not None:
            self._started = asyncio.get_running_loop().time()
            self.limit.reschedule(self._started + self._left_s)

    def pause(self) -> None:
        """A request begins to wait for its turn."""
        if self._started is not None and self._left_s is not None and not self.limit.expired():
            self._left_s -= asyncio.get_running_loop().time() - self._started
            self._started = None
            self.limit.reschedule(None)


current: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


async def pausing(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """A middleware before polite's: what is in it waits for a turn until a connection is wanted."""
    exchange = current.get()
    if exchange is None:
        return await handler(request)
    exchange.pause()
    exchange.response = await handler(request)
    return exchange.response


def resuming() -> aiohttp.TraceConfig:
    """Return a trace of what a request does first when it has its turn: it wants a connection."""
    traced = aiohttp.TraceConfig()

    async def resume(_session: aiohttp.ClientSession, _context: SimpleNamespace, _params: object) -> None:
        if (exchange := current.get()) is not None:
            exchange.resume()

    traced.on_connection_queued_start.append(resume)
    traced.on_connection_create_start.append(resume)
    traced.on_connection_reuseconn.append(resume)
    return traced
