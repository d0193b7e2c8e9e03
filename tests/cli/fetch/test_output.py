"""What a run writes: records, bodies, the log and messages; which files it shares with no other; and errors of writing."""

import io
import json
from contextlib import closing
from pathlib import Path

import pytest

from polite.cli.fetch.archive import Folder
from polite.cli.fetch.page import Page
from polite.cli.fetch.progress import OriginStats
from polite.cli.fetch.record import RepeatedLines, RunLog, reopen, reopen_log
from polite.cli.main import main
from polite.cli.timeline import Log
from polite.errors import InvalidOption
from polite.events import Dropped
from polite.frontier.sqlite.file_lock import FileLock
from polite.robots.exchange import BodyEnd
from polite.testing import ManualClock
from tests.cli.fetch.conftest import drop

URL = "http://a.test/"


def _full(file):
    def full(self, *_, **__):
        raise OSError(28, "No space left on device", file)

    return full


@pytest.mark.parametrize(
    ("writer", "file", "urls"),
    [(Folder, "bodies/ab", ("/a", "/b")), (RunLog, "records.jsonl", ("/no", "/no/2"))],
)
def test_a_body_or_a_refusal_that_cannot_be_written_ends_the_run_with_one_line(
    writer, file, urls, site, monkeypatch
):
    monkeypatch.setattr(writer, "_write", _full(file))
    assert site.run("--quiet", *urls) == 2
    assert (site.err, site.records) == (f"polite: {file}: No space left on device\n", {})


@pytest.mark.parametrize(
    ("arguments", "output", "said"),
    [((), False, True), (("--quiet",), False, False), ((), True, False), (("--warc", "a.warc.gz"), False, False)],
)  # fmt: skip
def test_a_run_that_keeps_no_bodies_says_so_once(arguments, output, said, site, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert site.run(*arguments, "/a", "/b", output=output) == 0
    assert site.err.count("polite: bodies are not kept; --output DIR or --warc FILE keeps them\n") == said
    assert not arguments or arguments[0] != "--quiet" or site.err == ""


def test_the_log_has_each_request_refusal_and_back_off(site, tmp_path):
    site.pages["/busy"] = [{"status": 429, "headers": {"Retry-After": "9"}}, {"text": "now"}]
    site.pages["/gone"] = [drop]

    journal = str(tmp_path / "journal")
    site.run(
        "--log", str(tmp_path / "run.jsonl"), "--journal", journal, "--tries", "2", "/busy", "/no", "/gone"
    )
    assert main(["journal", "verify", journal]) == 0

    assert (
        f"of 1,000 requests, 200.0 were refused: {site.origin} refused 1 of 4 requests since the first of these (250 per 1,000)"
        in site.err
    )
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    told = ", ".join(f"{each['event']} {each.get('status') or ''}".strip() for each in lines)
    assert told == "run, robots 200, refused, slowed 429, request 429, request 200, request, request"
    assert ({each["origin"] for each in lines[1:]}, lines[3]["for_s"]) == ({site.origin}, 9)
    requests = [each["t"] for each in lines if each["event"] == "request"]
    assert requests == pytest.approx([at - site.began for at in site.times], abs=0.01)


def test_a_folder_with_records_of_another_run_is_refused(site):
    site.run("/a")
    assert site.run("/b") == 2
    assert "records.jsonl already exists; choose another folder, or continue it with --resume" in site.err
    assert list(site.records) == ["/a"]


# Two options, and two processes, never write to the same file. This is checked before any file is opened.


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--log", "q", "--resume", "q"], ("--log", "--resume")),
        (["--log", "q.robots", "--resume", "q"], ("--log", "--resume (FILE.robots)")),
        (["--log", "x/../w.warc.gz", "--warc", "w.warc.gz"], ("--log", "--warc")),
        (["--resume", "out/records.jsonl", "--output", "out"], ("--resume", "--output (DIR/records.jsonl)")),
        (["--log", "out/bodies/ab/ab", "--output", "out"], ("--log", "--output (DIR/bodies)")),
        (["--log", "pages", "--recrawl", "pages"], ("--log", "--recrawl")),
        (["--journal", "pages", "--recrawl", "pages"], ("--journal", "--recrawl")),
    ],
)
def test_two_options_for_one_file_are_wrong_usage(arguments, names, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert site.run(*arguments, "/a", output=False) == 2
    assert site.err.startswith(f"polite: {names[0]} and {names[1]} would both use {arguments[1]}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", ["--list f --log f", "--config f --recrawl f"])
def test_no_file_that_is_read_is_written_to(arguments, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_text("# precious")
    assert site.run(*arguments.split(), "/a", output=False) == 2, site.err
    assert (tmp_path / "f").read_text() == "# precious"


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_is_the_file_it_leads_to(link, is_there, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if is_there or link == "hardlink_to":
        (tmp_path / "q").write_text("precious")
    getattr(tmp_path / "log", link)(tmp_path / "q")
    assert site.run("--log", "log", "--resume", "q", "/a", output=False) == 2
    assert "--log and --resume would both use log" in site.err
    assert not (tmp_path / "q").exists() or (tmp_path / "q").read_text() == "precious"


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["--output", "out"], "out/records.jsonl"),
        (["--output", "out", "--resume", "queue"], "out/records.jsonl"),
        (["--log", "run.jsonl"], "run.jsonl"),
        (["--warc", "w.warc.gz"], "w.warc.gz"),
    ],
)
def test_two_processes_never_write_to_the_same_file(arguments, file, site, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    other = FileLock(Path(file))
    assert other.acquire(0)

    assert site.run("--quiet", *arguments, "/a", output=False) == 2
    assert site.err == (
        f"polite: {arguments[0]}: another polite fetch is writing to {file}; wait until it ends, or choose another path\n"
    )
    assert not Path(file).exists()
    assert site.asked == []

    other.release()
    assert site.run("--quiet", *arguments, "/a", output=False) == 0
    assert list(tmp_path.rglob("*-lock")) == []


LOGGED = (
    '{"t": 0.0, "event": "run", "at": 1.0}\n'
    '{"t": 1.0, "event": "request", "origin": "http://a", "url": "http://a/", "status": 200}\n'
)


def _line(url):
    return json.dumps({"url": url, "outcome": "fetched"}) + "\n"


RECORDED = _line("http://a/") + _line("http://b/")


@pytest.mark.parametrize("rest", ["", '{"url": "http://c/", "outc', "{"])
@pytest.mark.parametrize("before", [RECORDED, ""])
def test_a_line_that_a_killed_run_has_cut_is_taken_away(before, rest, tmp_path):
    path, log = tmp_path / "records.jsonl", tmp_path / "run.jsonl"
    path.write_text(before + rest)
    log.write_text(LOGGED + rest.replace("url", "t"))

    out, recorded = reopen(path)
    with out, reopen_log(log) as again:
        out.write(_line("http://d/"))
        again.write(LOGGED)

    assert recorded == ({"http://a/": "fetched", "http://b/": "fetched"} if before else {})
    assert path.read_text() == before + _line("http://d/")
    assert (log.read_text(), len(list(Log(log).entries()))) == (LOGGED * 2, 2)


@pytest.mark.parametrize("open_again", [reopen, reopen_log])
@pytest.mark.parametrize(
    "others",
    [
        b"x" * 9_000_000,
        b"[1]\n",
        b'{"url": "http://a/", "outcome": "eaten"}\n',
        b"[" * 9_999 + b"\n",
        b"nonsense\n" + RECORDED.encode() * 100_000,
        *(lines.encode() + b"nonsense" + end for lines in (RECORDED, LOGGED) for end in (b"\n", b"")),
    ],
    ids=range(9),
)
def test_a_file_of_another_program_is_not_changed(others, open_again, tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_bytes(others)
    with pytest.raises(
        InvalidOption, match=r"file\.jsonl: octet .* does not start a .*; the file was not changed"
    ):
        open_again(path)
    assert path.read_bytes() == others


def _page(body, *fields):
    given = {"request_fields": (), "status": 200, "reason": "", "fields": fields, "address": None}
    return Page(url="http://a/", raw=body, body=body, end=BodyEnd.COMPLETE, **given)


async def test_a_body_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.replace", _full("x"))
    with pytest.raises(OSError, match="No space"):
        await Folder(tmp_path).keep(_page(b"x"))
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize(
    ("because", "code", "detail"),
    [
        ("DNS_NXDOMAIN", "ROBOTS_DNS_NXDOMAIN", "the name does not exist; robots.txt is unreachable, so no page was requested"),
        ("PacingPolicy.max_pages=2: so many", "MAX_PAGES", "--max-pages=2: so many"),
        ("max_tries=3", "MAX_TRIES", "3 attempts, those of interrupted and killed runs included"),
        ("the server asks for a price: USD 1", "PAGE_DEMAND", "the server asks for a price: USD 1"),
        ("OSError", "NO_TURN", "OSError"),
    ],
)  # fmt: skip
async def test_what_was_given_up_says_why_the_cause_first(because, code, detail):
    out = io.StringIO()

    with closing(RepeatedLines()) as repeated:
        RunLog(out, None, {}, repeated, OriginStats(1.0), None, ManualClock())(Dropped(URL, because, 1))

    why = {"outcome": "given up", "code": code, "detail": detail, "tries": 1}
    assert json.loads(out.getvalue()) == {"url": URL, "input": URL, **why}
