"""`polite store`: print the file as text and as objects, and delete from it."""

import asyncio
import json
import re
import sqlite3
import time
from contextlib import closing
from functools import partial
from types import SimpleNamespace

import pytest

from polite.cli.main import main
from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.stores.robots_database import RobotsDatabase
from polite.stores.sqlite import SqliteStore

POLICY = RobotsPolicy()
FILE, NONE, DOWN, OLD, HELD, EVER = (
    Origin.of(f"https://{name}.test") for name in ("file", "none", "down", "old", "held", "zever")
)


@pytest.fixture
def crawl(tmp_path, monkeypatch):
    """A store as a crawl leaves it."""
    path, now = tmp_path / "crawl.sqlite", time.time()
    monkeypatch.setattr("polite.cli.store.command.time", SimpleNamespace(time=lambda: now))
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


def test_what_stands_for_ever_is_null_for_programs(crawl, capsys):
    assert listed(crawl, capsys)[-1]["expires_at"] is None


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


@pytest.mark.parametrize("origin", [NONE, HELD, EVER])
def test_show_of_an_origin_without_a_file_has_no_body(crawl, origin, capsys):
    assert main(["store", "show", str(origin), crawl]) == 0
    text = capsys.readouterr().out
    assert main(["store", "show", str(origin), crawl, "--json"]) == 0

    assert "\n\n" not in text
    assert json.loads(capsys.readouterr().out)["body"] is None


def test_show_of_an_unknown_origin_has_status_1(crawl, capsys):
    assert main(["store", "show", "https://other.test", crawl]) == 1
    out, err = capsys.readouterr()

    assert out == ""
    assert err == f"polite: {crawl} has nothing about https://other.test\n"


def test_purge_forgets_all_but_the_back_offs_that_run(crawl, capsys):
    assert main(["store", "purge", crawl]) == 0
    said = capsys.readouterr().out

    assert said == "deleted: 4 robots.txt, 1 back-off\n"
    assert names(crawl, capsys) == ["down", "file", "held"]
    assert main(["store", "purge", "--back-offs", "--json", crawl]) == 0
    assert json.loads(capsys.readouterr().out) == {"robots": 1, "back_offs": 2}
    assert names(crawl, capsys) == []


def test_purging_expired_entries_keeps_all_others(crawl, capsys):
    assert main(["store", "purge", "--expired", "--back-offs", crawl]) == 0

    assert capsys.readouterr().out == "deleted: 1 robots.txt, 1 back-off\n"
    assert names(crawl, capsys) == ["down", "file", "held", "none", "zever"]


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


def test_a_folder_is_called_a_folder(tmp_path, capsys):
    assert main(["store", "ls", str(tmp_path)]) == 2

    assert capsys.readouterr().err == f"polite: {tmp_path}: it is a folder, not a file\n"


def test_a_file_that_stays_locked_is_told_without_a_python_name(crawl, monkeypatch, capsys):
    monkeypatch.setattr(
        "polite.stores.robots_database.RobotsDatabase", partial(RobotsDatabase, busy_timeout=0.01)
    )
    with closing(sqlite3.connect(crawl, isolation_level=None)) as rival:
        rival.execute("BEGIN IMMEDIATE")
        assert main(["store", "purge", crawl]) == 2

    assert capsys.readouterr().err == (
        f"polite: {crawl}: another process kept it locked for longer than the busy timeout of 0.01 s\n"
    )


def test_a_copy_that_was_changed_is_one_line(crawl, capsys):
    import sqlite3

    connection = sqlite3.connect(crawl)
    with connection:
        connection.execute("UPDATE robots SET body = 'x'")
    connection.close()

    assert main(["store", "show", str(FILE), crawl]) == 2
    assert "the copy of https://file.test cannot be read" in capsys.readouterr().err
