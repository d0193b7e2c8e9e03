"""Records of resumed runs, and folders of bodies."""

import json

import pytest

from polite.cli.fetch import record as record_module
from polite.cli.fetch.archive import Folder
from polite.cli.fetch.lists import RepeatedLines
from polite.cli.fetch.page import Page
from polite.cli.fetch.record import of_page, reopen
from polite.errors import InvalidOption
from polite.robots.exchange import BodyEnd


def _page(body, *fields, end=BodyEnd.COMPLETE):
    return Page(
        url="http://a/",
        request_fields=(),
        status=200,
        reason="",
        fields=fields,
        raw=body,
        body=body,
        end=end,
        address=None,
    )


def _line(url):
    return json.dumps({"url": url, "outcome": "fetched"}) + "\n"


@pytest.mark.parametrize("rest", ["", '{"url": "http://c/", "outc'])
def test_a_line_that_was_cut_is_taken_away(rest, tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(_line("http://a/") + _line("http://b/") + rest)

    out, recorded = reopen(path)
    with out:
        out.write(_line("http://d/"))

    assert recorded == {"http://a/": "fetched", "http://b/": "fetched"}
    assert path.read_text() == _line("http://a/") + _line("http://b/") + _line("http://d/")


def test_of_a_long_file_the_last_records_are_known(tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    path.write_text("".join(map(_line, map(str, range(10)))))
    monkeypatch.setattr(record_module, "_TAIL", 3 * len(_line("1")) + 5)

    out, recorded = reopen(path)
    out.close()

    assert set(recorded) == {"7", "8", "9"}


@pytest.mark.parametrize(
    "others",
    [
        b"x" * 9_000_000,
        b"no newline at all",
        b"\n",
        b"a list of something\n",
        b"[1]\n",
        b"7\n",
        b'{"url": 7, "outcome": "fetched"}\n',
        b'{"url": "http://a/"}\n',
        b'{"url": "http://a/", "outcome": "eaten"}\n',
        b"[" * 9_999 + b"\n",
        b'{"url": "http://a/", "outcome": []}\n',
        b"\xff\xfe\n",
        _line("http://a/").encode() + b"nonsense\n",
        b"nonsense\n" + _line("http://a/").encode(),
        _line("http://a/").encode() + b"nonsense without its end",
        b"x" * 3_000 + b"\n" + _line("http://a/").encode() + b"\n",
    ],
    ids=range(16),
)
def test_a_file_of_another_program_is_not_changed(others, tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(others)

    with pytest.raises(
        InvalidOption,
        match=r"records\.jsonl: .* does not start a record of polite fetch; the file was not changed",
    ):
        reopen(path)
    assert path.read_bytes() == others


def test_of_a_long_file_the_last_records_and_the_first_octets_are_looked_at(tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    others = b"a list of something\n" + b"".join(_line(str(number)).encode() for number in range(10))
    path.write_bytes(others)
    monkeypatch.setattr(record_module, "_TAIL", 3 * len(_line("1")) + 5)

    with pytest.raises(InvalidOption, match="octet 0 "):
        reopen(path)
    assert path.read_bytes() == others


@pytest.mark.parametrize("rest", ["", '{"url": "http://c/", "outc', "{"])
def test_a_file_with_nothing_but_a_line_that_was_cut_begins_anew(rest, tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text(rest)

    out, recorded = reopen(path)
    out.close()

    assert (recorded, path.read_bytes()) == ({}, b"")


def test_a_record_longer_than_the_tail_is_not_cut(tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    path.write_text(_line("http://a/" + "x" * 1_000) + _line("http://b/"))
    whole = path.read_bytes()
    monkeypatch.setattr(record_module, "_TAIL", 100)

    out, recorded = reopen(path)
    out.close()

    assert (set(recorded), path.read_bytes()) == ({"http://b/"}, whole)


def test_of_the_fields_those_of_interest_are_kept_and_cut():
    page = _page(b"", ("Content-Type", "x" * 5_000), ("Set-Cookie", "secret"), ("ETag", '"1"'))

    headers = of_page(page, fetched_at=0.0, file=None)["headers"]

    assert headers == {"content-type": "x" * 1_000, "etag": '"1"'}


def test_what_a_site_says_of_the_use_of_a_page_is_kept():
    said = {
        "content-usage": "train-ai=n",
        "content-signal": "search=yes, use=reference",
        "tdm-reservation": "1",
        "tdm-policy": "/policy.json",
        "crawler-price": "USD 0.01",
        "www-authenticate": "License",
        "robots-tag": "*;noindex",
        "x-robots-tag": "noai",
    }

    record = of_page(_page(b"", *said.items()), fetched_at=0.0, file=None)

    assert record["headers"] == said


async def test_a_body_that_came_twice_is_there_once(tmp_path):
    folder = Folder(tmp_path)

    first, second = await folder.keep(_page(b"same")), await folder.keep(_page(b"same"))

    assert first == second
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == [first.rpartition("/")[2]]


async def test_a_body_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", fail)

    with pytest.raises(OSError, match="No space"):
        await Folder(tmp_path).keep(_page(b"x"))
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_the_lines_that_earlier_runs_recorded_are_counted_whatever_else_is_in_the_file(tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(
        b'{"url": "http://a/", "outcome": "duplicate"}\n'
        b'{"url": "old", "outcome": "invalid"}\n'
        b'{"url": "x", "input": "as given", "outcome": "invalid"}\n'
        b'{"url": "http://b/", "reason": "\\"outcome\\": \\"invalid\\"", "outcome": "failed"}\n'
        b'{"url": 7, "outcome": "duplicate"}\n'
        b'{"url": "http://c/", "outcome": "duplicate"'
    )
    lines = RepeatedLines()

    lines.read(path)
    lines.read(tmp_path / "missing")

    names = [
        ("duplicate", "http://a/"),
        ("invalid", "old"),
        ("invalid", "as given"),
        ("duplicate", "http://c/"),
    ]
    found = [lines.has_record(*each, lines.meet(*each)) for each in names]
    assert found == [True, True, True, True]
    lines.close()
