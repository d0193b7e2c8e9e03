"""`polite store` with the queue of a crawl: what waits, by origin."""

import asyncio
import json
import sqlite3
from contextlib import closing

import pytest

import polite
from polite.cli.main import main
from polite.frontier.sqlite import inspector
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport, VirtualTimeLoop

A, B = "https://a.test", "https://b.test"


def _run(path, work):
    """Run `work(frontier)` in virtual time."""

    async def run():
        transport = ScriptedTransport(
            {f"{A}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /no\nCrawl-delay: 7\n")}
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
    await frontier.put(f"{A}/1")
    await frontier.put(f"{A}/no")
    async with await anext(aiter(frontier)) as permit:
        permit.report(status=200)
    for number in range(2, 5):
        await frontier.put(f"{A}/{number}", depth=number - 2)
    await frontier.put(f"{B}/1", not_before=4e9)
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
    assert first == f"{A}  3 waiting, Crawl-delay 7 s"
    assert second.startswith(f"{B}  1 waiting, 1 of them later, in ")


def test_ls_gives_objects_for_programs(queue, capsys):
    totals, first, second = map(json.loads, _lines(capsys, "ls", "--json", queue))

    assert (totals["queue"], totals["waiting"], totals["refused"], totals["origins"]) == (queue, 4, 1, 2)
    assert (first["origin"], first["waiting"], first["crawl_delay"]) == (A, 3, 7.0)
    assert (second["delayed"], second["ready_at"]) == (1, 4e9)


def test_of_many_origins_the_rest_is_counted(queue, capsys):
    assert _lines(capsys, "ls", "--limit", "1", queue)[2:] == ["... 1 URL more of other origins (--limit 1)"]


def test_show_lists_the_urls_of_an_origin(queue, capsys):
    assert _lines(capsys, "show", f"{A}/any", queue, "--limit", "2") == [
        f"{A}  3 waiting, Crawl-delay 7 s",
        "  /2  ready",
        "  /3  ready, depth 1",
        "  ... 1 more (--limit 2)",
    ]
    (known,) = map(json.loads, _lines(capsys, "show", A, queue, "--json"))
    assert [each["path"] for each in known["tasks"]] == ["/2", "/3", "/4"]


def test_what_a_killed_crawl_had_in_flight_and_what_is_damaged_are_told(queue, capsys):
    with closing(sqlite3.connect(queue)) as file, file:
        file.execute("UPDATE tasks SET place = 1, tries = 1 WHERE path = '/2'")
        file.execute("UPDATE tasks SET place = 3 WHERE path = '/3'")
        file.execute("UPDATE origins SET failures = 2 WHERE text = ?", (A,))

    assert _lines(capsys, "show", A, queue)[:2] == [
        (
            f"{A}  2 waiting, 1 of them in flight when it ended, 1 damaged and set aside, Crawl-delay 7 s, "
            "robots.txt unreachable 2 times in a row"
        ),
        "  /2  in flight, 1 attempt so far",
    ]


def test_one_failure_is_no_row_of_them(queue, capsys):
    with closing(sqlite3.connect(queue)) as file, file:
        file.execute("UPDATE origins SET failures = 1 WHERE text = ?", (A,))

    assert _lines(capsys, "show", A, queue)[0].endswith(", robots.txt unreachable once")


def test_an_origin_without_urls_has_status_1(queue, capsys):
    assert main(["store", "show", "https://other.test", queue]) == 1

    assert capsys.readouterr().err == f"polite: no URL of https://other.test waits in {queue}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["purge"],
            "purge its robots.txt results with {queue}.robots, or delete all its files to begin anew",
        ),
        (["ls", A], "store ls takes no ORIGIN; use polite store show ORIGIN FILE"),
        (["show"], "ORIGIN is missing; use polite store show ORIGIN FILE"),
        (["ls", "--expired"], "--expired is for a file of robots.txt results, and {queue} is the queue"),
        (["purge", "--back-offs"], "--back-offs is for a file of robots.txt results"),
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


def test_a_queue_of_a_newer_polite_or_a_damaged_one_is_one_line(queue, capsys):
    with closing(sqlite3.connect(queue)) as file, file:
        file.execute("DROP TABLE tasks")
    assert main(["store", "ls", queue]) == 2
    assert "cannot be read as a queue (no such table: tasks)" in capsys.readouterr().err

    with closing(sqlite3.connect(queue)) as file, file:
        file.execute("PRAGMA user_version = 99")
    assert main(["store", "ls", queue]) == 2
    assert "was written by a newer polite" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_no_queue(tmp_path):
    assert not inspector.is_queue(tmp_path / "missing")
