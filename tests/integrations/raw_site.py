"""A server on loopback that logs each request as its octets were, and may close connections without a word."""

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


@dataclass
class RawSite:
    """A running server. Its targets are read when its clients are idle.

    Attributes:
        url: Its origin.
        robots: Its robots.txt.
        targets: The request targets in their order, without that of robots.txt.
        respond: What a target gets, as octets; None closes the connection. It may raise Closed.
    """

    url: str = ""
    robots: bytes = b""
    targets: list[str] = field(default_factory=list)
    respond: Callable[[str], bytes | None] = lambda _: PAGE

    def answer(self, target: str) -> bytes | None:
        if target == "/robots.txt":
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(self.robots), self.robots)
        self.targets.append(target)
        return self.respond(target)


def redirect(location: str) -> bytes:
    """Return a redirect whose Location is sent as it is, in UTF-8."""
    return b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % location.encode()


@contextmanager
def served_raw() -> Iterator[RawSite]:
    """Serve in threads, one for each connection."""
    site = RawSite()

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(ConnectionError):
                while (target := _read(self.rfile)) is not None:
                    response = site.answer(target)
                    if response is None:
                        return
                    self.wfile.write(response)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        site.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield site
        finally:
            server.shutdown()


def _read(file: BinaryIO) -> str | None:
    """Read a request with its body, and return its target; None at the connection's end."""
    line, length = file.readline(), 0
    while (field := file.readline().strip().lower()) != b"":
        if field.startswith(b"content-length:"):
            length = int(field.partition(b":")[2])
    file.read(length)
    return line.decode("latin-1").split(" ", 1)[1].rpartition(" ")[0] if line else None
