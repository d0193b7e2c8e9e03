"""A server on loopback that says exactly what a test tells it to, octet by octet: for the lies that no honest server tells."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

# What is sent, or who talks instead.
Lie = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class ScriptedServer:
    """`hits`: connections so far, the requests that nobody told you of among them. `requests`: the heads that were read."""

    def __init__(self, host: str, scheme: str) -> None:
        self.port = 0
        self.hits = 0
        self.requests: list[bytes] = []
        self._host = f"[{host}]" if ":" in host else host
        self._scheme = scheme

    def url(self, path: str = "/robots.txt", *, host: str | None = None) -> str:
        """Where a path of it is; under another name when that leads here."""
        return f"{self._scheme}://{host or self._host}:{self.port}{path}"

    async def serve(
        self, lie: Lie, hears: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.hits += 1
        try:
            if hears:
                self.requests.append(await reader.readuntil(hears))
            if isinstance(lie, bytes):
                writer.write(lie)
                await writer.drain()
            else:
                await lie(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted_server(
    *lies: Lie,
    host: str = "127.0.0.1",
    scheme: str = "http",
    hears: bytes = b"\r\n\r\n",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[ScriptedServer]:
    """Tell the first connection the first lie, and so on; the last stands. Each connection is closed after its lie.

    `hears`: what is waited for before a lie is told; empty: it is told at once. A lie that is a function talks for as long as it
    likes; what is still talking when the block is left is cancelled.
    """
    server = ScriptedServer(host, scheme)
    talking: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lie = lies[min(server.hits, len(lies) - 1)]
        task = asyncio.ensure_future(server.serve(lie, hears, reader, writer))
        talking.add(task)
        await asyncio.wait([task])

    listening = await asyncio.start_server(serve, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
