"""ConnectionPool: one guarded pool of connections for robots.txt and for pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from polite.robots.policy import FetchPolicy
from polite.transports.guarded_connector import GuardedConnector
from polite.transports.named_hosts import Given
from polite.transports.shared_response import SharedResponse

# Connections that are kept without being in use. A process often has a limit of 1,024 open files.
_MOST_IDLE = 400
# Set while robots.txt is fetched.
_new_only: ContextVar[bool] = ContextVar("new_only", default=False)


@contextmanager
def new_connections() -> Iterator[None]:
    """Use no kept connection inside the block.

    A server may close a kept connection at any moment. For a page, aiohttp repeats the request; for robots.txt, that would be
    a failure, and would disallow all pages for a while.
    """
    token = _new_only.set(True)
    try:
        yield
    finally:
        _new_only.reset(token)


class ConnectionPool(GuardedConnector):
    """Gives the connection of robots.txt to the page that comes next: one handshake instead of two.

    It has no limit on connections in use: a robots.txt that waited for the connections of pages would count that as its own
    time. Of those that are not in use, it keeps `most_idle`, and closes the oldest first: each is an open file.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        *,
        resolver: Given | None = None,
        most_idle: int = _MOST_IDLE,
        **options: object,
    ) -> None:
        super().__init__(policy, resolver=resolver, limit=0, **options)
        self._most_idle = most_idle
        self._idle: dict[ResponseHandler, None] = {}
        reader: type[ResponseHandler] = SharedResponse
        self._factory = partial(reader, loop=self._loop)

    async def _get(self, key: ConnectionKey, traces: list[Trace]) -> Connection | None:
        if _new_only.get():
            return None
        connection = await super()._get(key, traces)
        if connection is not None and connection.protocol is not None:
            self._idle.pop(connection.protocol, None)
        return connection

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        super()._release(key, protocol, should_close=should_close)
        if protocol.transport is None:
            return
        self._idle[protocol] = None
        if len(self._idle) > self._most_idle:
            # aiohttp forgets a closed one when it looks for one to use.
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.close()
