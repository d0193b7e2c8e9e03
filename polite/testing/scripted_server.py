"""ScriptedServer: a loopback server that sends what a test says, octet by octet."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Script = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Octets to send, or a function that talks to the client."""


class ScriptedServer:
    """A running scripted server, made by `scripted_server`.

    Attributes:
        port: the port it listens on.
        hits: the number of connections so far.
        requests: the request heads that were read.
    """

    def __init__(self, host: str, scheme: str) -> None:
        self.port = 0
        self.hits: int = 0
        self.requests: list[bytes] = []
        self._host = f"[{host}]" if ":" in host else host
        self._scheme = scheme

    def url(self, path: str = "/robots.txt", *, host: str | None = None) -> str:
        """Return the URL of a path, with another host name if that resolves to this machine."""
        return f"{self._scheme}://{host or self._host}:{self.port}{path}"

    async def serve(
        self, script: Script, hears: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Send one script over a connection, then close it. Called for each connection.

        Args:
            script: What to send.
            hears: The octets that end a request's head; empty to send without reading.
            reader: The connection's reading half.
            writer: Its writing half.
        """
        self.hits += 1
        try:
            if hears:
                self.requests.append(await reader.readuntil(hears))
            if isinstance(script, bytes):
                writer.write(script)
                await writer.drain()
            else:
                await script(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted_server(
    *scripts: Script,
    host: str = "127.0.0.1",
    scheme: str = "http",
    hears: bytes = b"\r\n\r\n",
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[ScriptedServer]:
    """Run a server that sends the first script to the first connection, and so on.

    The last script is repeated. Each connection is closed after its script.

    Args:
        scripts: octets to send, or a coroutine function that gets the connection's reader and writer. It is cancelled if it
            still runs at the end of the block.
        host: the address to listen on.
        scheme: the scheme of `ScriptedServer.url`.
        hears: the octets to read before sending; if empty, the script is sent at once.
        tls: the context for TLS.
    """
    server = ScriptedServer(host, scheme)
    running: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = scripts[min(server.hits, len(scripts) - 1)]
        task = asyncio.ensure_future(server.serve(script, hears, reader, writer))
        running.add(task)
        await asyncio.wait([task])

    listening = await asyncio.start_server(serve, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
