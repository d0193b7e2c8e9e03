"""One server process for many loopback hosts, which logs when the bytes of each request arrive.

`python -m benchmarks.hosts --hosts N --log FILE`: prints the port when it listens; at SIGTERM it writes its log, one JSON list
[seconds of CLOCK_MONOTONIC, host number, path, status] per line. Each host has an address of its own, 127.10.x.y.
"""

import argparse
import asyncio
import json
import math
import signal
import time
from functools import partial

from benchmarks import pace

ROBOTS = b"User-agent: *\nDisallow: /private/\n"
PAGE = b"<html><body>" + b"lorem ipsum " * 80 + b"</body></html>"


def address(number: int) -> str:
    return f"127.10.{number // 250}.{number % 250 + 1}"


def urls(hosts: int, pages: int, port: int) -> list[str]:
    """Return all pages, alternating between hosts, and at the end one disallowed URL per host."""
    paths = [*(f"/p/{page}" for page in range(pages)), "/private/x"]
    return [f"http://{address(host)}:{port}{path}" for path in paths for host in range(hosts)]


class Host(asyncio.Protocol):
    """Serves GET requests over HTTP/1.1."""

    def __init__(
        self,
        number: int,
        log: list[tuple[float, int, str, int]],
        options: argparse.Namespace,
        limit: pace.Host | None = None,
    ) -> None:
        self.number, self.log, self.options, self.limit = number, log, options, limit
        self.retry_after: float | None = options.retry_after
        self.buffer = b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        arrived = time.monotonic()
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode("latin-1")
            status, body, delay = self.response(path)
            self.log.append((arrived, self.number, path, status))
            asyncio.get_running_loop().call_later(delay, self.send, status, body)

    def response(self, path: str) -> tuple[int, bytes, float]:
        options = self.options
        if path == "/robots.txt":
            delays = [each for each in options.crawl_delay.split(",") if each]
            delay = f"Crawl-delay: {delays[self.number % len(delays)]}\n".encode() if delays else b""
            return 200, ROBOTS + delay, options.robots_latency
        if self.limit is not None:
            accepted, self.retry_after = self.limit.ask(time.monotonic() * options.scale)
            return (200, PAGE, options.latency) if accepted else (429, b"", options.latency)
        statuses = options.statuses.split(",")
        page = int(path.rpartition("/")[2]) if path.startswith("/p/") else 0
        status = int(statuses[page % len(statuses)])
        return status, b"" if status == 204 else PAGE, options.latency

    def send(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
        after = self.retry_after if status == 429 else None
        head += "\r\n" if after is None else f"Retry-After: {math.ceil(after / self.options.scale)}\r\n\r\n"
        self.transport.write(head.encode() + body)


async def serve(options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    log: list[tuple[float, int, str, int]] = []
    port = options.port
    servers = []
    for number in range(options.hosts):
        limit = pace.HOSTS[options.limits.split(";")[number]]() if options.limits else None
        made = partial(Host, number, log, options, limit)
        server = await loop.create_server(made, address(number), port, backlog=64)
        port = server.sockets[0].getsockname()[1]
        servers.append(server)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    print(port, flush=True)
    await stop.wait()
    with open(options.log, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(hit) + "\n" for hit in log)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument(
        "--crawl-delay",
        default="",
        help="seconds; several values separated by commas alternate between hosts",
    )
    parser.add_argument(
        "--statuses", default="200", help="separated by commas; they alternate between the pages of each host"
    )
    parser.add_argument("--retry-after", type=int, default=2, help="seconds, sent with each 429")
    parser.add_argument(
        "--limits", default="", help="names in benchmarks.pace, one for each host, with ; between"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="how many seconds pass for the limits in a second"
    )
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--robots-latency", type=float, default=0.0)
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
