"""A TCP proxy on loopback that can stop passing bytes without closing anything, and lead to another server."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from ssl import SSLContext
from typing import Any, Self

_CHUNK = 65536
_CLOSING_S = 0.05


class TcpProxy:
    """Runs in a thread of its own. `with TcpProxy(port) as proxy:` connect to `proxy.port` instead of `port`.

    With `ssl` it speaks TLS to its clients, as stunnel or a managed service does: the wheel's server has no TLS of its own.
    """

    def __init__(self, target: int, ssl: SSLContext | None = None) -> None:
        self._ssl = ssl
        self._target: int | None = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._passing, self.port = asyncio.Event(), 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def stop_passing(self) -> None:
        """From now on bytes of both ways stay where they are. Connections stay open; new ones get no answer."""
        self._loop.call_soon_threadsafe(self._passing.clear)

    def pass_again(self) -> None:
        self._loop.call_soon_threadsafe(self._passing.set)

    def lead_to(self, target: int | None) -> None:
        """Cut all connections; what was not passed is lost. New ones go to another port, or are cut at once."""
        self._run(self._lead_to(target))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        future: Future[None] = asyncio.run_coroutine_threadsafe(work, self._loop)
        future.result(10)

    async def _start(self) -> None:
        self._passing.set()
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, ssl=self._ssl)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        # asyncio forgets a connection that was accepted and is not made yet when its server closes: all shall be made.
        await asyncio.sleep(_CLOSING_S)
        self._server.close()
        await self._cut()
        # Aborted connections close their sockets in the loop's next rounds.
        await asyncio.sleep(_CLOSING_S)

    async def _lead_to(self, target: int | None) -> None:
        self._target = target
        await self._cut()
        self._passing.set()

    async def _cut(self) -> None:
        connections = list(self._connections)
        for each in connections:
            each.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._connect(reader, writer))
        self._connections.add(task)

        # A task that is cancelled before its first step runs nothing of its own, not even what stands in `finally`.
        def ended(task: asyncio.Task[None]) -> None:
            self._connections.discard(task)
            writer.transport.abort()

        task.add_done_callback(ended)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._passing.wait()
        if self._target is None:
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            return  # the server is away: its client shall find that
        try:
            async with asyncio.TaskGroup() as ways:
                for source, sink in ((reader, far_writer), (far_reader, writer)):
                    ways.create_task(self._pass(source, sink))
        except* EOFError:
            pass  # one end has closed: the other way ends too
        finally:
            far_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self._passing.wait()
                writer.write(chunk)
                await writer.drain()
        raise EOFError
