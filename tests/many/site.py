"""A site on loopback in real time, which notes the requests of other processes."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """A site with two hosts. Each path is a page; robots.txt disallows /no.

    Attributes:
        hosts: The hosts' root URLs, without a slash at the end.
        asked: The URLs of all requests, in order.
        before: Called with the URL before each response.
    """

    def __init__(self, port: int) -> None:
        self.hosts = (f"http://127.0.0.1:{port}", f"http://localhost:{port}")
        self.asked: list[str] = []
        self.before: Callable[[str], object] = lambda _: None

    def urls(self, pages: int) -> list[str]:
        return [f"{host}/{page}" for page in range(pages) for host in self.hosts]

    @property
    def robots(self) -> list[str]:
        return [f"{host}/robots.txt" for host in self.hosts]

    @property
    def times_asked(self) -> Counter[str]:
        return Counter(self.asked)


@contextmanager
def serving() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://{self.headers['Host']}{self.path}"
            site.asked.append(url)
            site.before(url)
            body = b"User-agent: *\nDisallow: /no\n" if self.path == "/robots.txt" else b"page"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site = Site(server.server_port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        server.shutdown()
        thread.join()
