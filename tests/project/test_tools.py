"""`./dev man`, and the guard that refuses what leaves the machine."""

import socket

import aiodns
import pytest

from docs.website import man_pages
from polite.cli.main import ENVIRONMENT


def test_the_man_pages_are_those_of_the_parser() -> None:
    tracked = {file.name: file.read_text(encoding="utf-8") for file in man_pages.FOLDER.iterdir()}
    assert tracked == man_pages.pages(), "run ./dev man"
    text = "".join(tracked.values())
    assert all(f"\\fB{name}\\fR" in text for name in ENVIRONMENT)
    assert man_pages._text(".so /etc - \\n") == "\\&.so /etc \\- \\en"


@pytest.mark.parametrize(
    "leave",
    [
        lambda: socket.socket().connect(("192.0.2.1", 80)),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"?", ("192.0.2.1", 53)),
        lambda: socket.getaddrinfo("example.com", 80),
        lambda: aiodns.DNSResolver(nameservers=["192.0.2.53"]),
        lambda: setattr(aiodns.DNSResolver(nameservers=["127.0.0.1:1"]), "nameservers", ["192.0.2.53"]),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_no_test_leaves_the_machine(leave) -> None:
    with pytest.raises(Exception, match=r"may not (reach|ask)"):
        leave()
