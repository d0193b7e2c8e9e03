"""`python -m tests.many.sites WORLD LOG`: one process that serves all hosts of a world, and logs when requests arrive.

It prints its port when it listens. A line of the log is: seconds of CLOCK_MONOTONIC when the request's last byte was read, host,
path, and the process that sent it, as its User-Agent says. It is written at once. A request that is cut short is no request.
"""

import asyncio
import re
import socket
import sys
import time
from collections.abc import Callable
from functools import partial

from polite.judge.verdict import ROBOTS
from tests.many.world import World

_PORT_TRIES = 20
_PROCESS = re.compile(rb"\r\nuser-agent: [^\r\n]*\(process ([^)\r\n]*)\)", re.IGNORECASE)


class _Connection(asyncio.Protocol):
    def __init__(self, sites: "Sites", host: int) -> None:
        self._sites, self._host, self._buffer = sites, host, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        at = time.monotonic()
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            self._transport.write(self._sites.response(at, self._host, head))


class Sites:
    """Responds for all hosts, and tells each request to `log`."""

    def __init__(self, world: World, port: int, log: Callable[[str], object]) -> None:
        self.world, self._port, self._log = world, port, log

    def response(self, at: float, host: int, head: bytes) -> bytes:
        path = head.split(b" ", 2)[1].decode("latin-1")
        process = _PROCESS.search(head)
        self._log(f"{at:.6f} {host} {path} {process[1].decode() if process else '?'}\n")
        if path == ROBOTS:
            return _ok(b"text/plain", self.world.robots(host))
        page = path.removeprefix("/p/")
        if not page.isdigit() or int(page) >= self.world.pages:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        links = (self.world.url(*link, self._port) for link in self.world.links(host, int(page)))
        return _ok(b"text/html", "".join(f'<a href="{link}">{link}</a>\n' for link in links).encode())


def _ok(kind: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)) + body


def _listen(world: World) -> tuple[int, list[socket.socket]]:
    """Return one listening socket per host, all on one port."""
    for _ in range(_PORT_TRIES):
        opened: list[socket.socket] = []
        port = 0
        try:
            for host in range(world.hosts):
                opened.append(socket.create_server((world.address(host), port), backlog=128))
                port = opened[0].getsockname()[1]
        except OSError:
            for each in opened:
                each.close()
        else:
            return port, opened
    raise OSError(f"no port is free on all of {world.address(0)} to {world.address(world.hosts - 1)}")


async def main(world: World, path: str) -> None:
    """Serve until standard input ends, as it does when the judging process ends."""
    port, opened = _listen(world)
    with open(path, "w", buffering=1) as log:  # noqa: PTH123
        sites = Sites(world, port, log.write)
        loop = asyncio.get_running_loop()
        for host, each in enumerate(opened):
            await loop.create_server(partial(_Connection, sites, host), sock=each)
        print(port, flush=True)
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(World.read(sys.argv[1]), sys.argv[2]))
