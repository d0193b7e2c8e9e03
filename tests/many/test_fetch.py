"""`polite fetch --store`: several processes at once on a real server, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.many.servers import ValkeyServer

pytestmark = pytest.mark.slow("processes and servers in real time")

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60


class Site:
    """A site with two hosts on loopback in real time, which notes the requests of other processes. Each path is a page.

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


@pytest.fixture
def site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://{self.headers['Host']}{self.path}"
            site.asked.append(url)
            site.before(url)
            body = b"User-agent: *\n" if self.path == "/robots.txt" else b"page"
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


class Run:
    """A process of `polite fetch`, and what it printed and recorded."""

    def __init__(self, folder: Path, arguments: tuple[str, ...]) -> None:
        self._records = folder / "records.jsonl"
        command = [
            sys.executable,
            "-m",
            "polite",
            "fetch",
            "--agent",
            "TestBot/1.0",
            "--allow-private",
            "--quiet",
        ]
        self.process = subprocess.Popen(
            [*command, "--delay", "0.05", "--output", str(folder), *arguments],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> tuple[int, str]:
        """Wait for its end. Return the status, and what it said but for the warning that the server keeps nothing."""
        _, errors = self.process.communicate(timeout=LIMIT_S)
        lines = [line for line in errors.splitlines() if "appendonly is no" not in line]
        return self.process.returncode, "\n".join(lines)

    @property
    def records(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self._records.read_text().splitlines()]

    @property
    def outcomes(self) -> dict[str, str]:
        records = self.records
        outcomes = {record["url"]: record["outcome"] for record in records}
        assert len(outcomes) == len(records)
        return outcomes


@pytest.fixture
def fetch(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start `polite fetch` in a process of its own, with a folder by name."""
    runs: list[Run] = []

    def start(folder: str, *arguments: str) -> Run:
        runs.append(Run(tmp_path / folder, arguments))
        return runs[-1]

    yield start
    for run in runs:
        run.process.kill()
        run.process.communicate()


def test_an_interrupted_run_leaves_its_pages_to_others_and_goes_on_with_the_same_command(
    valkey: ValkeyServer, site: Site, fetch: Callable[..., Run]
) -> None:
    shared = ("--store", valkey.url, "--crawl", "news")
    runs: list[Run] = []

    def interrupt(url: str) -> None:
        if url == f"{site.hosts[0]}/3":  # once: the second time would not wait for this request
            os.kill(runs[0].process.pid, signal.SIGINT)

    site.before = interrupt
    runs.append(fetch("one", *shared, *site.urls(12)))
    status, errors = runs[0].end()
    site.before = lambda _: None
    again = fetch("one", *shared, *site.urls(12))

    assert status == 130
    assert "waiting URLs are kept in crawl news" in errors
    assert again.end() == (0, "")
    assert site.times_asked == dict.fromkeys([*site.urls(12), *site.robots], 1)
    assert again.outcomes == dict.fromkeys(site.urls(12), "fetched")
