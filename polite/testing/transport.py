"""ScriptedTransport: a transport that responds from a script, without a network."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from polite.options import instance
from polite.robots.exchange import Ask, Failed, Reply

Answer = Reply | Failed | Exception
"""An entry of a script: a response, a failure, or an exception to raise."""


class ScriptedTransport:
    """Responds to each URL with the entries of a script, in order. The last entry is repeated.

    A URL without an entry is a 404. An exception in the script is raised. `hold()` delays all responses until
    `let_go()`.

    Args:
        script: for each URL one entry, or a sequence of entries.

    Attributes:
        asked: the URLs in the order of the requests.
        closed: how often `close` was called.
    """

    def __init__(self, script: Mapping[str, Answer | Sequence[Answer]] | None = None) -> None:
        self._script: dict[str, list[Answer]] = {}
        self.asked: list[str] = []
        self.closed: int = 0
        self._open = asyncio.Event()
        self._open.set()
        for url, answers in (script or {}).items():
            self.answer(url, *(answers if isinstance(answers, Sequence) else (answers,)))

    def answer(self, url: str, *answers: Answer) -> None:
        """Replace the entries of a URL by these answers. Raises InvalidOption if one is none."""
        for answer in answers:
            instance(f"the script of {url}", answer, Answer, "a Reply, a Failed or an exception")  # type: ignore[arg-type]
        self._script[url] = list(answers)

    def hold(self) -> None:
        """Delay all responses until `let_go`."""
        self._open.clear()

    def let_go(self) -> None:
        """Respond again."""
        self._open.set()

    async def get(self, ask: Ask) -> Reply | Failed:
        """Return the next entry of the script."""
        url = ask.target.url
        self.asked.append(url)
        await self._open.wait()
        answers = self._script.get(url, [Reply(404)])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        """Count the call in `closed`."""
        self.closed += 1


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
