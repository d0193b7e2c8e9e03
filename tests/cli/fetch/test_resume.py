"""Resumed runs: nothing is fetched twice, nothing is lost, and no gap is short."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from aiohttp import web

from polite.frontier.sqlite.inspector import waiting_by_origin

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 60


async def _interrupted(request):
    signal.raise_signal(signal.SIGINT)
    return web.Response(text="the last one")


@pytest.fixture
def queue(tmp_path):
    return str(tmp_path / "queue.sqlite")


@pytest.fixture
def prompt(site):
    """The site in real time: virtual time does not wait for the thread of the robots store."""
    site.loop = asyncio.SelectorEventLoop
    run = site.run
    site.run = lambda *arguments, **options: run("--delay", "0", *arguments, **options)
    return site


@pytest.fixture
def patient(site):
    """The site in virtual time without a limit: time passes while the robots store works."""
    site.limit_s = None
    return site


def test_an_interrupted_run_goes_on_where_it_was(prompt, queue):
    prompt.pages["/b"] = [_interrupted]

    assert prompt.run("--resume", queue, "/a", "/b", "/c", "/no", "/d") == 130
    assert prompt.err.endswith(f"interrupted; 2 waiting URLs are kept in {queue}\n")
    assert prompt.run("--resume", queue) == 0

    assert prompt.paths == ["/a", "/b", "/c", "/d"]
    assert list(prompt.records) == ["/no", "/a", "/b", "/c", "/d"]
    assert len((prompt.folder / "records.jsonl").read_text().splitlines()) == 5


def test_the_gap_is_kept_and_robots_txt_is_not_asked_for_again(patient, queue):
    patient.pages["/a"] = [_interrupted]

    patient.run("--resume", queue, "--delay", "30", "/a", "/b")
    patient.run("--resume", queue, "--delay", "30")

    assert [path for _, path in patient.asked] == ["/robots.txt", "/a", "/b"]
    assert patient.times[1] - patient.began >= 30


def test_the_same_list_again_adds_nothing(prompt, queue):
    prompt.run("--resume", queue, "/a", "/b", "nonsense")

    assert prompt.run("--resume", queue, "/a", "/b", "/c", "nonsense") == 0
    assert prompt.paths == ["/a", "/b", "/c"]
    assert list(prompt.records) == ["nonsense", "/a", "/b", "/c"]


def test_what_was_recorded_and_not_yet_acknowledged_is_not_fetched_again(prompt, queue):
    prompt.pages["/a"] = [_interrupted]
    prompt.run("--resume", queue, "/a", "/b", "/c", "/no")
    with (prompt.folder / "records.jsonl").open("a") as records:
        records.write(json.dumps({"url": f"{prompt.origin}/b", "outcome": "fetched"}) + "\n")

    assert prompt.run("--resume", queue) == 0

    assert prompt.paths == ["/a", "/c"]


def test_a_run_that_was_ended_at_once_costs_a_page_none_of_its_tries(prompt, queue):
    async def hang(request):
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)
        await asyncio.Event().wait()

    prompt.pages["/a"] = [hang, {"text": "now"}]

    assert prompt.run("--resume", queue, "--tries", "1", "/a") == 130
    assert prompt.run("--resume", queue, "--tries", "1") == 0
    assert (prompt.records["/a"]["outcome"], prompt.records["/a"]["tries"]) == ("fetched", 2)


def test_the_log_of_both_runs_is_one(prompt, queue, tmp_path):
    prompt.pages["/a"] = [_interrupted]

    for urls in (["/a", "/b"], []):
        prompt.run("--resume", queue, "--log", str(tmp_path / "run.jsonl"), *urls)

    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [each["event"] for each in lines] == ["run", "robots", "request", "run", "request"]


def test_the_time_left_knows_what_waits_from_before(patient, queue):
    patient.pages["/a"] = [_interrupted]
    patient.run("--resume", queue, "--delay", "9", *(f"/{letter}" for letter in "abcdefgh"))

    patient.run("--resume", queue, "--delay", "9")

    assert "(7 x 9 s)" in patient.err.splitlines()[0] or "(6 x 9 s)" in patient.err.splitlines()[0]


def test_a_file_of_something_else_is_one_line(prompt, queue):
    Path(queue).write_bytes(b"no database at all" * 100)

    assert prompt.run("--quiet", "--resume", queue, "/a") == 2
    assert prompt.err.startswith(f"polite: {queue}")
    assert prompt.err.count("\n") == 1


def test_records_of_something_else_are_one_line_and_stay_as_they_are(prompt, queue):
    prompt.folder.mkdir()
    records = prompt.folder / "records.jsonl"
    records.write_bytes(b"x" * 9_000_000)

    assert prompt.run("--quiet", "--resume", queue, "/a") == 2
    assert prompt.err.startswith(f"polite: --output: {records}: ")
    assert prompt.err.count("\n") == 1
    assert records.read_bytes() == b"x" * 9_000_000
    assert prompt.asked == []


def test_nothing_waits_in_a_file_that_is_not_there_or_is_empty(tmp_path):
    empty = tmp_path / "empty"
    empty.touch()

    for path in (tmp_path / "missing", tmp_path, empty):
        assert waiting_by_origin(path, 9) == []


def test_a_file_of_something_else_leaves_no_file_behind(prompt, queue):
    Path(queue).write_bytes(b"no database at all" * 100)

    prompt.run("--quiet", "--resume", queue, "/a")

    assert list(prompt.folder.parent.iterdir()) == [Path(queue)]


def test_the_robots_store_of_a_queue_is_no_queue(prompt, queue):
    prompt.run("--resume", queue, "/a", output=False)
    files = set(prompt.folder.parent.iterdir())

    assert prompt.run("--resume", f"{queue}.robots", "/a") == 2

    assert prompt.err == (
        f"polite: {queue}.robots keeps robots.txt results of a gate: a queue needs a file of its own, "
        "name another file\n"
    )
    assert set(prompt.folder.parent.iterdir()) == files


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "--resume must be the name of a file, got ''"),
        (":memory:", "--resume must be the name of a file, got ':memory:'"),
        (
            "redis://user:secret@example.com/1",
            "--resume must be the name of a file, got 'redis://example.com/1'",
        ),
        (".", "--resume . is a folder; name a file in it"),
    ],
)
def test_what_is_not_the_name_of_a_file_is_wrong_usage_and_makes_none(
    site, tmp_path, monkeypatch, name, said
):
    monkeypatch.chdir(tmp_path)

    assert site.run("--resume", name, "/a") == 2

    assert site.err == f"polite: {said}\n"
    assert list(tmp_path.iterdir()) == []


class _Stalling(BaseHTTPRequestHandler):
    """Responds to all requests but the first one for `/slow`."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path == "/slow" and self.server.asked.count("/slow") == 1:
            self.server.stalled.set()
            self.server.killed.wait(LIMIT_S)
            return
        body = b"" if self.path == "/robots.txt" else b"page"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def stalling():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Stalling) as server:
        server.asked, server.stalled, server.killed = [], threading.Event(), threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.killed.set()
        server.shutdown()
        thread.join()


@pytest.mark.slow("starts processes")
def test_a_run_that_is_killed_loses_nothing_and_repeats_only_what_was_under_way(stalling, tmp_path, queue):
    origin = f"http://127.0.0.1:{stalling.server_port}"
    command = [sys.executable, "-m", "polite", "fetch", "--allow-private", "--quiet", "--delay", "0"]
    files = ["--output", str(tmp_path / "pages"), "--warc", str(tmp_path / "a.warc.gz"), "--resume", queue]
    urls = [f"{origin}/{name}" for name in ("a", "b", "slow", "c", "d")]

    with subprocess.Popen([*command, *files, *urls], cwd=ROOT) as first:
        assert stalling.stalled.wait(LIMIT_S)
        os.kill(first.pid, signal.SIGKILL)
    stalling.killed.set()
    subprocess.run([*command, *files], cwd=ROOT, check=True, timeout=LIMIT_S)

    lines = (tmp_path / "pages" / "records.jsonl").read_text().splitlines()
    records = {each["url"].removeprefix(origin): each for each in map(json.loads, lines)}
    assert sorted(records) == ["/a", "/b", "/c", "/d", "/slow"]
    assert len(lines) == 5
    assert records["/slow"]["tries"] == 2
    assert sorted(stalling.asked) == ["/a", "/b", "/c", "/d", "/robots.txt", "/slow", "/slow"]


def test_a_typo_without_urls_is_an_error_and_makes_no_file(prompt, queue, tmp_path):
    assert prompt.run("--resume", f"{queue}x") == 2

    assert prompt.err == (
        f"polite: --resume {queue}x: there is no such file to continue; check its name, or pass the URLs as well\n"
    )
    assert list(tmp_path.iterdir()) == []
