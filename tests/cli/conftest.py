"""Fixtures of the command line's tests: a site on loopback, a file of rules, standard input."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest


class Site:
    """A server on loopback in a thread of its own.

    `robots` is the status and body of all responses, and `redirects` maps paths to the Location of a 302. `before` is called with
    the path of each request.
    """

    def __init__(self, port):
        self.origin = f"http://127.0.0.1:{port}"
        self.robots = (200, b"User-agent: *\nDisallow: /no\n")
        self.redirects = {}
        self.asked = []
        self.before = self.asked.append


@pytest.fixture
def site():
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            playing.before(self.path)
            location = playing.redirects.get(self.path)
            status, body = playing.robots if location is None else (302, b"")
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        playing = Site(server.server_port)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield playing
        server.shutdown()
        thread.join()


@pytest.fixture
def rules(tmp_path):
    """The path of a robots.txt."""
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
