"""`polite store`: print a file of robots.txt results or the queue of a crawl, and delete from it."""

import asyncio
import json
import re
import sqlite3
import time
from contextlib import closing
from types import SimpleNamespace

import pytest

import polite
from polite.cli.main import main
from polite.frontier.sqlite import inspector
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
    """A store as a crawl leaves it."""
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


def listed(crawl, capsys):
    capsys.readouterr()
    assert main(["store", "ls", "--json", crawl]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def names(crawl, capsys):
    return [known["origin"].removeprefix("https://").removesuffix(".test") for known in listed(crawl, capsys)]


def test_ls_has_a_line_for_each_origin(crawl, capsys):
    assert main(["store", "ls", crawl]) == 0
    lines = capsys.readouterr().out.splitlines()

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


def test_ls_gives_objects_for_programs(crawl, capsys):
    down, file, held, *_ = listed(crawl, capsys)

    assert (down["outcome"], down["failures"], down["detail"]) == ("unreachable", 1, "too\nslow")
    assert file["back_off_until"] - file["fetched_at"] == 5_000.0
    assert (held["outcome"], held["back_off_because"]) == (None, "status 503")


def test_show_has_all_that_is_known_and_the_file(crawl, capsys):
    assert main(["store", "show", "https://FILE.test:443/some/page", crawl]) == 0
    out = capsys.readouterr().out

    assert out.startswith("https://file.test\n  outcome: found\n  reason: OK\n")
    assert "  back_off_because: status 429, Retry-After 5000 s\n" in out
    assert "\n\nUser-agent: *\nDisallow: /" in out
    assert out.count("20") > 2  # the years


def test_show_lets_no_site_steer_the_terminal(crawl, capsys):
    for origin in (FILE, DOWN):
        main(["store", "show", str(origin), crawl])
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert r"\x1b[31m" in out

    assert r"  detail: too\nslow" in out


def test_show_gives_an_object_with_the_body(crawl, capsys):
    assert main(["store", "show", str(DOWN), crawl, "--json"]) == 0
    known = json.loads(capsys.readouterr().out)

    # The server is down; only the last good copy exists.
    assert known["body"].startswith("User-agent: *\nDisallow: /")
    assert len(known["body"]) == 9_030


def test_purge_forgets_all_but_the_back_offs_that_run(crawl, capsys):
    assert main(["store", "purge", crawl]) == 0
    said = capsys.readouterr().out

    assert said == "deleted: 4 robots.txt, 1 back-off\n"
    assert names(crawl, capsys) == ["down", "file", "held"]
    assert main(["store", "purge", "--back-offs", "--json", crawl]) == 0
    assert json.loads(capsys.readouterr().out) == {"robots": 1, "back_offs": 2}
    assert names(crawl, capsys) == []


def test_purge_of_one_origin_leaves_the_others(crawl, capsys):
    assert main(["store", "purge", "https://none.test/page", crawl]) == 0

    assert names(crawl, capsys) == ["down", "file", "held", "old", "zever"]


@pytest.mark.parametrize(
    ("options", "arguments", "said"),
    [
        ([], ["ls", "https://file.test"], "takes no ORIGIN"),
        (["--expired"], ["ls"], "takes no --expired"),
        (["--back-offs"], ["show", str(FILE)], "takes no --back-offs"),
        ([], ["show"], "ORIGIN is missing"),
        ([], ["show", "http:///"], "no URL"),
    ],
)
def test_what_an_action_does_not_take_is_a_usage_error(crawl, options, arguments, said, capsys):
    assert main(["store", *options, *arguments, crawl]) == 2

    assert said in capsys.readouterr().err


@pytest.mark.parametrize("action", ["ls", "purge"])
@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (None, "no such file"),
        (b"plain text " * 99, "crawl.sqlite is not a store: it is no SQLite file; name another file\n"),
        (b"SQLite format 3\0plain" * 99, "corrupt"),
        (b"", "is empty|deleted"),
    ],
)
def test_a_file_that_is_no_store_is_left_as_it_is(tmp_path, action, octets, said, capsys):
    path = tmp_path / "crawl.sqlite"
    if octets is not None:
        path.write_bytes(octets)

    status = main(["store", action, str(path)])

    out, err = capsys.readouterr()
    assert any(word in out + err for word in said.split("|"))
    assert status == (2 if err else 0)
    assert [file.name for file in tmp_path.glob("*corrupt*")] == []
    assert octets is None or b"plain" not in octets or path.read_bytes() == octets


def test_purging_expired_entries_keeps_all_others(crawl, capsys):
    assert main(["store", "purge", "--expired", "--back-offs", crawl]) == 0

    assert capsys.readouterr().out == "deleted: 1 robots.txt, 1 back-off\n"
    assert names(crawl, capsys) == ["down", "file", "held", "none", "zever"]


QA, QB = "https://a.test", "https://b.test"


def _run(path, work):
    """Run `work(frontier)` in virtual time."""

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


def _lines(capsys, *arguments, status=0):
    assert main(["store", *arguments]) == status
    return capsys.readouterr().out.splitlines()


def test_ls_names_the_totals_and_each_origin_with_the_most_urls_first(queue, capsys):
    totals, first, second = _lines(capsys, "ls", queue)

    assert totals == f"{queue}  4 waiting, 1 done, 1 refused, 0 dropped; 2 origins seen"
    assert first == f"{QA}  3 waiting, Crawl-delay 7 s"
    assert second.startswith(f"{QB}  1 waiting, 1 of them later, in ")


def test_show_lists_the_urls_of_an_origin(queue, capsys):
    assert _lines(capsys, "show", f"{QA}/any", queue, "--limit", "2") == [
        f"{QA}  3 waiting, Crawl-delay 7 s",
        "  /2  ready",
        "  /3  ready, depth 1",
        "  ... 1 more (--limit 2)",
    ]
    assert _lines(capsys, "ls", "--limit", "1", queue)[2:] == ["... 1 URL more of other origins (--limit 1)"]
    totals, first, _ = map(json.loads, _lines(capsys, "ls", "--json", queue))
    assert (totals["waiting"], totals["refused"], first["origin"], first["crawl_delay"]) == (4, 1, QA, 7.0)
    (known,) = map(json.loads, _lines(capsys, "show", QA, queue, "--json"))
    assert [each["path"] for each in known["tasks"]] == ["/2", "/3", "/4"]


def test_what_a_killed_crawl_had_in_flight_and_what_is_damaged_are_told(queue, capsys):
    with closing(sqlite3.connect(queue)) as file, file:
        file.execute("UPDATE tasks SET place = 1, tries = 1 WHERE path = '/2'")
        file.execute("UPDATE tasks SET place = 3 WHERE path = '/3'")
        file.execute("UPDATE origins SET failures = 2 WHERE text = ?", (QA,))

    assert _lines(capsys, "show", QA, queue)[:2] == [
        (
            f"{QA}  2 waiting, 1 of them in flight when it ended, 1 damaged and set aside, Crawl-delay 7 s, "
            "robots.txt unreachable 2 times in a row"
        ),
        "  /2  in flight, 1 attempt so far",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["purge"],
            "purge its robots.txt results with {queue}.robots, or delete all its files to begin anew",
        ),
        (["ls", QA], "store ls takes no ORIGIN; use polite store show ORIGIN FILE"),
        (["show"], "ORIGIN is missing; use polite store show ORIGIN FILE"),
        (["ls", "--expired"], "takes no --expired: {queue} is the queue of a crawl"),
        (["purge", "--back-offs"], "takes no --back-offs: "),
    ],
)
def test_what_a_queue_does_not_take_is_a_usage_error(queue, arguments, said, capsys):
    assert main(["store", *arguments, queue]) == 2

    assert said.format(queue=queue) in capsys.readouterr().err


def test_a_queue_that_a_crawl_has_open_is_named(queue, capsys, monkeypatch):
    monkeypatch.setattr(inspector, "_BUSY_TIMEOUT_S", 0.01)

    async def look(_):
        assert main(["store", "ls", queue]) == 2

    _run(queue, look)
    assert (
        capsys.readouterr().err
        == f"polite: {queue}: a crawl has it open; its own progress shows what waits\n"
    )


def test_the_queue_of_polite_fetch_is_counted_as_its_records_are(queue, capsys):
    with closing(sqlite3.connect(queue)) as file, file:
        notes = [("options", "options", "{}", 0), (f"{QA}/9", "given up", "{}", 0)]
        file.executemany("INSERT INTO notes VALUES (?, ?, ?, ?)", notes)

    assert "4 waiting, 0 fetched, 1 refused, 0 failed, 1 given up" in _lines(capsys, "ls", queue)[0]
