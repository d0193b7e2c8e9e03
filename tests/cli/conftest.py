"""Fixtures of the command line's tests: a site on loopback, a file of rules, standard input."""

import sys

import pytest

from tests.integrations.site import redirect, served_raw


class Site:
    """A server on loopback in a thread of its own.

    `robots` is the status and body of all responses, and `redirects` maps paths to the Location of a 302. `before` is called with
    the path of each request.
    """

    def __init__(self, origin):
        self.origin = origin
        self.robots = (200, b"User-agent: *\nDisallow: /no\n")
        self.redirects, self.asked = {}, []
        self.before = self.asked.append

    def answer(self, path):
        self.before(path)
        if path in self.redirects:
            return redirect(self.redirects[path])
        status, body = self.robots
        return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.fixture
def site():
    with served_raw() as server:
        site = Site(server.url)
        server.answer = site.answer
        yield site


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "robots.txt"
    path.write_bytes(
        b"User-agent: *\nDisallow: /no\nAllow: /no/but\n\nUser-agent: OtherBot\nDisallow: /\nCrawl-delay: 0\n"
    )
    return str(path)


@pytest.fixture
def feed(tmp_path, monkeypatch):
    """`feed(octets)` sets standard input."""
    opened = []

    def feed(octets):
        path = tmp_path / "stdin"
        path.write_bytes(octets)
        opened.append(path.open())
        monkeypatch.setattr(sys, "stdin", opened[-1])

    yield feed
    for stream in opened:
        stream.close()
