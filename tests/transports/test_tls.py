"""How a body ends over TLS: only a close_notify says that a body without length and chunks is whole (RFC 9112, 9.8)."""

import os
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pytest
import trustme

from polite.origin import Target
from polite.robots.exchange import Ask, BodyEnd, Reply
from polite.robots.policy import FetchPolicy
from polite.transports.http import HttpTransport

HEAD = b"HTTP/1.1 200 OK\r\n"
RULES = b"User-agent: *\nDisallow: /private/\n"
LIMIT_S = 60

End = Callable[[ssl.SSLSocket], None]


def farewell(connection: ssl.SSLSocket) -> None:
    connection.unwrap().close()


def cut(connection: ssl.SSLSocket) -> None:
    os.close(connection.detach())


class TlsServer:
    """Answers one connection over TLS with `answer`, and ends it as `end` does."""

    def __init__(self, folder: Path, answer: bytes, end: End) -> None:
        authority = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        authority.cert_pem.write_to_path(self.ca_file)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(self._tls)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._answer, self._end = answer, end
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        connection = self._tls.wrap_socket(self._listening.accept()[0], server_side=True)
        connection.settimeout(LIMIT_S)
        while not connection.recv(65_536).endswith(b"\r\n\r\n"):
            pass
        connection.sendall(self._answer)
        self._end(connection)


async def fetched(server: TlsServer) -> Reply:
    transport = HttpTransport("TestBot/1.0", FetchPolicy(allow_private=True, ca_file=server.ca_file))
    reply = await transport.get(Ask(Target.of(f"https://127.0.0.1:{server.port}/robots.txt")))
    await transport.close()
    assert isinstance(reply, Reply), reply
    return reply


LENGTH = b"Content-Length: %d\r\n\r\n" % len(RULES)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(RULES), RULES)


@pytest.mark.parametrize(
    ("answer", "end", "comes_to"),
    [
        (HEAD + b"\r\n" + RULES, farewell, BodyEnd.COMPLETE),
        (HEAD + b"\r\n" + RULES, cut, BodyEnd.CUT_SHORT),
        (HEAD + b"\r\n" + b"#" * 500_000, cut, BodyEnd.CUT_SHORT),  # it made the reader pause
        (HEAD + b"\r\n", cut, BodyEnd.CUT_SHORT),
        (HEAD + LENGTH + RULES, cut, BodyEnd.COMPLETE),
        (HEAD + CHUNKED, cut, BodyEnd.COMPLETE),
    ],
    ids=[
        "farewell",
        "cut",
        "cut-large",
        "cut-before-the-body",
        "cut-after-the-length",
        "cut-after-the-last-chunk",
    ],
)
async def test_h8_over_tls_only_a_close_notify_ends_a_body_without_a_length(answer, end, comes_to, tmp_path):
    with TlsServer(tmp_path, answer, end) as server:
        reply = await fetched(server)

    assert (reply.status, reply.end) == (200, comes_to)
