"""`polite store`: print a file of robots.txt results or the queue of a crawl, and delete from it."""

import asyncio
import json
import re
import time
from types import SimpleNamespace

import pytest

import polite
from polite.cli.main import main
from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.exchange import Reply
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

POLICY = RobotsPolicy()
FILE, NONE, DOWN, OLD, HELD, EVER = (
    Origin.of(f"https://{name}.test") for name in ("file", "none", "down", "old", "held", "zever")
)


@pytest.fixture
def crawl(tmp_path, monkeypatch):
    path, now = tmp_path / "crawl.sqlite", time.time()
    monkeypatch.setattr("polite.cli.store.time", SimpleNamespace(time=lambda: now))
    rules = Found(b"User-agent: *\nDisallow: /\x1b[31m" + b"#" * 9_000, 200, FILE.robots_url)
    found = renewed(None, rules, POLICY, now)
    known = {
        FILE: found,
        NONE: renewed(None, Unavailable(Reason.CLIENT_ERROR, NONE.robots_url, 404), POLICY, now),
        DOWN: renewed(
            found, Unreachable(Reason.TIMEOUT, "", detail="too\nslow", retry_after_s=900.0), POLICY, now
        ),
        OLD: renewed(None, Unavailable(Reason.CLIENT_ERROR, OLD.robots_url, 404), POLICY, now - 100_000),
        EVER: Snapshot(Unavailable(Reason.CLIENT_ERROR, "", 404), now, float("inf")),
    }

    async def fill():
        store = SqliteStore(path)
        for origin, snapshot in known.items():
            await store.save(origin, snapshot)
        store.hold(FILE, SavedBackOff(now, now + 5_000.0, "status 429, Retry-After 5000 s"))
        store.hold(HELD, SavedBackOff(now, now + 5_000.0, "status 503"))
        store.hold(OLD, SavedBackOff(now - 900.0, now - 600.0, "over"))
        await store.close()

    asyncio.run(fill())
    return str(path)


@pytest.fixture
def run(capsys):
    def run(*arguments, status=0):
        capsys.readouterr()
        assert main(["store", *arguments]) == status
        return capsys.readouterr().out.splitlines()

    return run


def names(crawl, run):
    known = [json.loads(line)["origin"] for line in run("ls", "--json", crawl)]
    return [name.removeprefix("https://").removesuffix(".test") for name in known]


def test_ls_has_a_line_or_an_object_for_each_origin(crawl, run):
    lines = run("ls", crawl)

    assert [re.split("  (?:expires|expired|never expires)", line)[0] for line in lines] == [
        "https://down.test  unreachable TIMEOUT",
        "https://file.test  found 200 OK, 9030 octets",
        "https://held.test  not fetched yet  backs off for 5000 s",
        "https://none.test  unavailable 404 CLIENT_ERROR",
        "https://old.test  unavailable 404 CLIENT_ERROR",
        "https://zever.test  unavailable 404 CLIENT_ERROR",
    ]
    assert lines[1].endswith("s  backs off for 5000 s")
    assert lines[4].endswith("expired 13600 s ago")
    down, file, held, *_ = map(json.loads, run("ls", "--json", crawl))
    assert (down["outcome"], down["failures"], down["detail"]) == ("unreachable", 1, "too\nslow")
    assert file["back_off_until"] - file["fetched_at"] == 5_000.0
    assert (held["outcome"], held["back_off_because"]) == (None, "status 503")


def test_show_has_all_that_is_known_and_lets_no_site_steer_the_terminal(crawl, run):
    out = "\n".join(run("show", "https://FILE.test:443/some/page", crawl))
    assert out.startswith("https://file.test\n  outcome: found\n  reason: OK\n")
    assert "  back_off_because: status 429, Retry-After 5000 s\n" in out
    assert "\n\nUser-agent: *\nDisallow: /\\x1b[31m" in out
    assert re.search(r"fetched_at: 20\d\d-", out)
    assert "\x1b" not in out
    assert r"  detail: too\nslow" in run("show", str(DOWN), crawl)
    # The server is down; only the last good copy exists.
    (known,) = map(json.loads, run("show", str(DOWN), crawl, "--json"))
    assert known["body"].startswith("User-agent: *\nDisallow: /")
    assert len(known["body"]) == 9_030


@pytest.mark.parametrize(
    ("options", "said", "left"),
    [
        ([], "deleted: 4 robots.txt, 1 back-off", ["down", "file", "held"]),
        (["--back-offs", "--json"], '{"robots": 5, "back_offs": 3}', []),
        (["--expired", "--back-offs"], "deleted: 1 robots.txt, 1 back-off", ["down", "file", "held", "none", "zever"]),
        (["https://none.test/page"], "deleted: 1 robots.txt, 0 back-offs", ["down", "file", "held", "old", "zever"]),
    ],
)  # fmt: skip
def test_purge_forgets_what_is_asked_for_but_for_back_offs_that_run(crawl, run, options, said, left):
    assert run("purge", *options, crawl) == [said]
    assert names(crawl, run) == left


@pytest.mark.parametrize(
    ("given", "left"), [((), True), (("--expired",), True), (("--back-offs",), False), ((FILE.text,), True)]
)
def test_a_learned_pace_outlives_its_back_off_for_a_week(tmp_path, run, given, left):
    path, now = str(tmp_path / "paces.sqlite"), time.time()

    async def save():
        store = SqliteStore(path)
        for origin, at in ((FILE, now - 3_600), (OLD, now - 8 * 86_400)):
            store.hold(origin, SavedBackOff(at, at + 10, "status 429", b"pace"))
        await store.close()

    asyncio.run(save())
    run("purge", *given, path)

    listed = str(run("ls", path))
    assert (FILE.text in listed, OLD.text in listed) == (left, FILE.text in given)


@pytest.mark.parametrize("action", ["ls", "purge"])
@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (None, "no such file"),
        (b"plain text " * 99, "crawl.sqlite is not a store: it is no SQLite file; name another file\n"),
        (b"SQLite format 3\0plain" * 99, "corrupt"),
    ],
)
def test_a_file_that_is_no_store_is_left_as_it_is(tmp_path, action, octets, said, capsys):
    path = tmp_path / "crawl.sqlite"
    if octets is not None:
        path.write_bytes(octets)
    assert main(["store", action, str(path)]) == 2
    assert said in capsys.readouterr().err
    assert [file.read_bytes() for file in tmp_path.iterdir()] == ([] if octets is None else [octets])


QA, QB = "https://a.test", "https://b.test"


def _run(path, work):
    async def run():
        transport = ScriptedTransport(
            {f"{QA}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /no\nCrawl-delay: 7\n")}
        )
        async with (
            polite.open_gate("ExampleBot/1.0", transports={"https": transport}, clock=LoopClock()) as gate,
            polite.open_frontier(gate, store=path) as frontier,
        ):
            await work(frontier)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


async def _crawl(frontier):
    """One URL is done, one was disallowed, and one is delayed."""
    await frontier.put(f"{QA}/1")
    await frontier.put(f"{QA}/no")
    async with await anext(aiter(frontier)) as permit:
        permit.report(status=200)
    for number in range(2, 5):
        await frontier.put(f"{QA}/{number}", depth=number - 2)
    await frontier.put(f"{QB}/1", not_before=4e9)
    await frontier.drain()


@pytest.fixture
def queue(tmp_path):
    path = tmp_path / "queue.sqlite"
    _run(path, _crawl)
    return str(path)


def test_ls_names_the_totals_and_each_origin_with_the_most_urls_first(queue, run):
    totals, first, second = run("ls", queue)
    assert totals == f"{queue}  4 waiting, 1 done, 1 refused, 0 dropped; 2 origins seen"
    assert first == f"{QA}  3 waiting, Crawl-delay 7 s"
    assert second.startswith(f"{QB}  1 waiting, 1 of them later, in ")


def test_show_lists_the_urls_of_an_origin(queue, run):
    assert run("show", f"{QA}/any", queue, "--limit", "2") == [
        f"{QA}  3 waiting, Crawl-delay 7 s",
        "  /2  ready",
        "  /3  ready, depth 1",
        "  ... 1 more (--limit 2)",
    ]
    assert run("ls", "--limit", "1", queue)[2:] == ["... 1 URL more of other origins (--limit 1)"]
    totals, first, _ = map(json.loads, run("ls", "--json", queue))
    assert (totals["waiting"], totals["refused"], first["origin"], first["crawl_delay"]) == (4, 1, QA, 7.0)
    (known,) = map(json.loads, run("show", QA, queue, "--json"))
    assert [each["path"] for each in known["tasks"]] == ["/2", "/3", "/4"]
