"""Resumed runs: nothing is fetched twice, nothing is lost, and no gap is short; how a run handles ^C and SIGTERM."""

import asyncio
import contextlib
import json
import signal
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web

from polite.cli.fetch import queue_file
from polite.cli.fetch.archive import Warc
from polite.cli.main import main
from tests.cli.fetch.conftest import drop, interrupted


def test_an_interrupted_run_goes_on_where_it_was(prompt, queue):
    prompt.pages["/b"] = [interrupted]

    assert prompt.run("--resume", queue, "/a", "/b", "/c", "/no", "/d") == 130
    assert prompt.err.endswith(f"interrupted; 2 waiting URLs are kept in {queue}\n")
    assert prompt.run("--resume", queue) == 0

    assert prompt.paths == ["/a", "/b", "/c", "/d"]
    assert list(prompt.records) == ["/no", "/a", "/b", "/c", "/d"]
    assert len((prompt.folder / "records.jsonl").read_text().splitlines()) == 5
    assert prompt.run("--resume", f"{queue}.robots", "/e") == 2
    assert "queue.sqlite.robots keeps robots.txt results of a gate: a queue needs a file" in prompt.err


def test_the_gap_is_kept_and_robots_txt_is_not_asked_for_again(patient, queue):
    patient.pages["/a"] = [interrupted]
    patient.run("--resume", queue, "--delay", "30", "/a", "/b")
    patient.run("--resume", queue, "--delay", "30")
    assert [path for _, path in patient.asked] == ["/robots.txt", "/a", "/b"]
    assert patient.times[1] - patient.began >= 30


@pytest.mark.parametrize("output", [True, False])
def test_what_was_recorded_and_not_yet_acknowledged_is_not_fetched_again(output, prompt, queue):
    prompt.pages["/a"] = [interrupted]
    prompt.run("--resume", queue, "/a", "/b", "/c", "/no", output=output)
    records = prompt.folder / "records.jsonl" if output else Path(f"{queue}.recorded")
    with records.open("a") as file:
        file.write(json.dumps({"url": f"{prompt.origin}/b", "outcome": "fetched"}) + '\n{"url": "http')

    assert prompt.run("--resume", queue, output=output) == 0

    assert prompt.paths == ["/a", "/c"]
    assert "polite: 1 URL was not requested: " in prompt.err


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


@pytest.fixture
def failing(prompt):
    """The site with a page that fails once, one that is busy once, one that is gone, and one that is disallowed."""
    prompt.pages["/fails"] = [drop, {"text": "now"}]
    prompt.pages["/busy"] = [{"status": 502}, {"text": "now"}]
    prompt.pages["/gone"] = [{"status": 404}]
    prompt.urls = ("/fails", "/busy", "/gone", "/no", "/a")
    return prompt


def _outcomes(site):
    return {path: record["outcome"] for path, record in site.records.items()}


def test_a_url_that_was_not_fetched_is_counted_by_each_run_until_one_fetches_it(failing, queue):
    assert failing.run("--resume", queue, "--tries", "1", *failing.urls) == 3
    for given in ([], failing.urls):
        assert failing.run("--resume", queue, *given) == 3
        assert failing.err.endswith(
            "polite: 2 URLs are not fetched: 1 failed, 1 given up; --retry all tries again\n"
        )
    assert len(failing.paths) == 4

    assert failing.run("--resume", queue, "--retry", "failed") == 3
    assert failing.err.endswith("polite: 1 URL is not fetched: 1 given up; --retry all tries again\n")
    assert failing.run("--resume", queue, "--retry", "given-up") == 0
    assert failing.run("--resume", queue) == 0

    assert failing.paths[4:] == ["/fails", "/busy"]
    assert _outcomes(failing) == dict.fromkeys(failing.urls, "fetched") | {"/no": "refused"}
    assert "not fetched" not in failing.err


def test_what_is_final_counts_in_the_run_that_meets_it_alone(prompt, queue):
    assert prompt.run("--resume", queue, "/no") == 1
    assert prompt.run("--resume", queue, "--retry", "all", "/no") == 0

    assert prompt.run("--resume", queue, "--change", "--max-pages", "2", "/a", "/b", "/c", "/d") == 3
    assert prompt.run("--resume", queue, "--retry", "all") == 0
    assert prompt.err.endswith(
        "2 URLs were given up because of an option, such as --max-pages or --allow-private; "
        "--retry all --change tries again with another\n"
    )
    assert prompt.run("--resume", queue, "--retry", "all", "--change", "--max-pages", "9") == 0

    assert prompt.paths == ["/a", "/b", "/c", "/d"]
    assert "option" not in prompt.err


def test_a_blocked_address_is_tried_again_when_the_options_permit_it(prompt, queue):
    assert prompt.run("--resume", queue, "/a", "/b", private=False) == 3
    assert prompt.run("--resume", queue, "--retry", "all", private=False) == 0
    assert prompt.asked == []
    assert prompt.run("--resume", queue, "--retry", "all", "--change") == 0
    assert _outcomes(prompt) == {"/a": "fetched", "/b": "fetched"}


def test_an_interrupted_retry_goes_on(prompt, queue, monkeypatch):
    monkeypatch.setattr(queue_file, "_AT_A_TIME", 3)
    pages = [f"/{number}" for number in range(10)]
    prompt.pages = {path: [{"status": 408}, {"text": "now"}] for path in pages}
    prompt.pages["/from"] = [{"status": 302, "headers": {"Location": "/9"}}]
    options = ("--quiet", "--resume", queue, "--concurrency", "1")
    assert prompt.run(*options, "--tries", "1", "/from", *pages[:9]) == 3
    prompt.pages["/4"] = [interrupted]

    assert prompt.run(*options, "--retry", "given-up") == 130
    assert len(prompt.paths) < 21
    # With the option, since the interrupt may come before all are put.
    assert prompt.run("--quiet", "--resume", queue, "--retry", "given-up") == 0

    assert len(prompt.paths) == 21
    assert set(_outcomes(prompt).values()) == {"fetched"}
    assert prompt.records["/9"]["from"] == prompt.records["/9"]["input"] == f"{prompt.origin}/from"


def test_a_resumed_run_has_the_options_of_its_beginning(prompt, queue):
    seen = []

    async def see(request):
        seen.append((request.headers["User-Agent"], request.headers.get("X-One")))
        return web.Response(text="x" * 99)

    prompt.pages.update({path: [see] for path in ("/a", "/b")})
    prompt.run("--resume", queue, "--agent", "FirstBot/1.0", "--header", "X-One: 1", "--max-bytes", "7", "/a")

    assert main(["fetch", "--resume", queue, "--output", str(prompt.folder), f"{prompt.origin}/b"]) == 0

    assert (seen, prompt.records["/b"]["length"]) == ([("FirstBot/1.0", "1")] * 2, 7)


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (("--agent", "A/1"), ("--agent", "B/1"), "has --agent A/1, and this run --agent B/1;"),
        (("--delay", "0.5"), ("--delay", "1e-9"), "has --delay 0.5, and this run --delay 1e-09;"),
        ((), ("--allow-private",), "has no --allow-private, and this run --allow-private;"),
        (("--max-pages", "3"), ("--max-pages", "4"), "has --max-pages 3, and this run --max-pages 4;"),
        (("--dialect", "google"), ("--dialect", "rfc9309"), "has --dialect google, and this run --dialect rfc9309;"),
        ((), ("--header", "A: b"), "has no --header, and this run --header 'A: b';"),
        (("--resolve", "a.test:1.2.3.4"), ("--resolve", "a.test:1.2.3.5"), "has --resolve 'a.test:1.2.3.4', and this run"),
        (("--back-off-on", "403"), ("--back-off-on", "404"), "has --back-off-on '403', and this run --back-off-on '404';"),
        (("--header", "Cookie: a"), ("--header", "Cookie: b"), "has --header 'Cookie: (not kept, digest "),
        (("--header", "Cookie: a"), (), "the value of --header Cookie is not kept in the file; pass it again"),
    ],
)  # fmt: skip
def test_another_value_is_refused_and_named_and_nothing_is_sent(prompt, queue, first, then, said):
    prompt.run("--resume", queue, *first, "/no", private=False)
    kept, asked = Path(queue).read_bytes(), len(prompt.asked)

    assert prompt.run("--resume", queue, *then, "/a", private=False) == 2

    assert said in prompt.err
    assert prompt.err.startswith(f"polite: --resume {queue}: ")
    assert prompt.err.count("\n") == 1
    assert (len(prompt.asked), Path(queue).read_bytes()) == (asked, kept)
    assert b"Cookie: a" not in kept
    for again in range(2):  # after --change, it is the kept one
        change = () if again else ("--change",)
        assert prompt.run("--resume", queue, *(then or first), *change, "/no", private=False) != 2


def test_the_same_values_are_no_change(prompt, queue):
    same = "--agent A/1 --header Cookie:a --header X:1 --back-off-on 403 --delay 0.10".split()
    same += ["--max-pages", str(10**15)]

    for path in ("/a", "/b"):
        assert prompt.run("--resume", queue, *same, path) == 0
    # What changes neither pace nor requests may differ.
    others = ("--tries", "9", "--timeout", "7", "--concurrency", "2", "--max-outage", "9")
    assert prompt.run("--resume", queue, *same, *others, "/d") == 0
    # Names of fields are compared without case (RFC 9110 5.1).
    lower = ["x:1" if each == "X:1" else each for each in same]
    assert prompt.run("--resume", queue, *lower, "/e") == 0


def test_only_secret_fields_are_passed_again(prompt, queue):
    first = ("--header", "X-Two: 2", "--header", "Authorization: a", "--header", "Cookie: c")
    prompt.run("--resume", queue, *first, "/a")
    again = ("--header", "Cookie: c", "--header", "Authorization: a")

    assert prompt.run("--resume", queue, *again[:2]) == 2
    assert "the value of --header Authorization is not kept in the file; pass it again" in prompt.err
    assert prompt.run("--resume", queue, *again, "/b") == 0
    assert prompt.run("--resume", queue, *again, "--header", "X-Two: 3") == 2
    # A change replaces all.
    assert prompt.run("--resume", queue, *again, "--change") == 0
    assert prompt.run("--resume", queue, *again, "--header", "X-Two: 2") == 2


def test_store_ls_counts_a_queue_as_its_records_do_also_after_a_retry(prompt, queue, capsys):
    prompt.pages |= {
        "/404": [{"status": 404}],
        "/500": [{"status": 500}],
        "/drop": [drop, drop, {"text": "now"}],
    }
    run = ("--resume", queue, "--tries", "1", "--max-outage", "0")
    prompt.run(*run, "/a", "/404", "/500", "/drop", "/no", "http://127.0.0.1:9/")

    def counted():
        assert main(["store", "ls", "--json", queue]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[0])

    counts = Counter(_outcomes(prompt).values())
    assert counts == {"fetched": 2, "failed": 1, "given up": 2, "refused": 1}
    assert counts.items() <= counted().items()
    for _ in range(2):
        prompt.run(*run, "--retry", "failed")
    assert {"waiting": 0, "failed": 0, "fetched": 3, "given up": 2}.items() <= counted().items()


@pytest.mark.parametrize("change", [(), ("--change",)])
def test_a_queue_that_a_crawl_has_open_says_so(change, prompt, queue):
    assert prompt.run("--resume", queue, "/a") == 0
    with contextlib.closing(sqlite3.connect(queue, isolation_level=None)) as file:
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        file.execute("BEGIN EXCLUSIVE")
        assert prompt.run("--resume", queue, *change, "/b", named=False) == 2
    assert prompt.err == f"polite: {queue}: a crawl has it open\n"


def _stop(number, after_s=0.0):
    """Return a response during which the run gets a signal."""

    async def stop(request):
        signal.raise_signal(number)
        await asyncio.sleep(after_s)
        return web.Response(text="the last one")

    return stop


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_finishes_requests_in_flight(number, status, site):
    site.pages["/stop"] = [_stop(number, 2)]
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    assert site.run("/stop", "/a", "/b") == status

    assert list(site.records) == site.paths == ["/stop"]
    assert "polite: finishing requests in flight; interrupt again to stop at once\n" in site.err
    assert site.err.endswith("interrupted; 2 waiting URLs are lost (--resume keeps them)\n")
    # Afterwards each means what it meant before.
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize(
    ("numbers", "status", "shortest"),
    [
        ([signal.SIGINT], 130, 11),
        ([signal.SIGINT, signal.SIGTERM], 130, 3),
        ([signal.SIGTERM, signal.SIGINT], 143, 3),
    ],
)
def test_a_first_interrupt_waits_for_a_limited_time_and_a_second_not_at_all(numbers, status, shortest, site):
    async def hang(request):
        for number in numbers:
            signal.raise_signal(number)
            await asyncio.sleep(2)
        await asyncio.sleep(1_000)

    site.pages["/hang"] = [hang]

    assert site.run("--timeout", "500", "/hang") == status
    assert site.records == {}
    assert shortest <= site.took_s <= shortest + 1


@pytest.mark.parametrize(("presses", "closed"), [(1, True), (3, False)])
def test_an_interrupt_while_files_close_lets_them_close(presses, closed, site, monkeypatch, tmp_path):
    ended = []

    async def close(self):
        for _ in range(presses):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(1)
        ended.append(True)

    monkeypatch.setattr(Warc, "close", close)

    assert site.run("--warc", str(tmp_path / "a.warc.gz"), "/a") == 130
    assert bool(ended) is closed
    assert site.records["/a"]["outcome"] == "fetched"
