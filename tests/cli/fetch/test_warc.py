"""Pages in a WARC file, as warcio reads them, also after a killed run."""

import gzip
import sys
from dataclasses import replace

import pytest
from warcio.archiveiterator import ArchiveIterator

from polite.cli.fetch.archive import Warc
from polite.cli.fetch.page import Page
from polite.errors import InvalidOption
from polite.robots.exchange import BodyEnd
from tests.cli.fetch.conftest import AGENT


def _page(body=b"hello", *fields, end=BodyEnd.COMPLETE):
    given = {"request_fields": (("Host", "a.test"), ("User-Agent", "Bot/1.0")), "status": 200}
    given |= {"address": None, "reason": "Schön", "fields": fields or (("Content-Type", "text/plain"),)}
    return Page(url="http://a.test/x?y=1", raw=body, body=body, end=end, **given)


def _read(path):
    with path.open("rb") as file:
        return [
            (record.rec_type, record.rec_headers, record.http_headers, record.content_stream().read())
            for record in ArchiveIterator(file, check_digests="raise")
        ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crawl.warc.gz"


async def test_a_page_is_a_response_and_its_request(path):
    warc = Warc(path)

    assert await warc.keep(_page()) == "crawl.warc.gz"
    await warc.close()

    info, response, request = _read(path)
    assert (info[0], info[1]["WARC-Filename"]) == ("warcinfo", "crawl.warc.gz")
    assert (response[0], response[1]["WARC-Target-URI"], response[3]) == (
        "response",
        "http://a.test/x?y=1",
        b"hello",
    )
    assert response[2].statusline == "200 Schön"
    assert (request[0], str(request[2]).splitlines()[0]) == ("request", "GET /x?y=1 HTTP/1.1")
    assert request[1]["WARC-Concurrent-To"] == response[1]["WARC-Record-ID"]


@pytest.mark.parametrize(
    "value", ["größe=1; path=/ü".encode(), "größe=1; path=/ü".encode("latin-1"), b"\x01\x7f\x80"]
)  # fmt: skip
async def test_a_field_and_a_reason_keep_the_octets_that_were_sent(value, path):
    page = _page(b"hello", ("Set-Cookie", value.decode("latin-1")), ("X-Last", "1"))
    await Warc(path).keep(replace(page, reason=value.decode("utf-8", "surrogateescape")))
    assert b"HTTP/1.1 200 " + value + b"\r\n" in gzip.decompress(path.read_bytes())
    assert b"\r\nSet-Cookie: " + value + b"\r\nX-Last: 1\r\n\r\nhello" in gzip.decompress(path.read_bytes())
    assert _read(path)[1][3] == b"hello"


@pytest.mark.parametrize(("end", "says"), [(BodyEnd.CAPPED, "length"), (BodyEnd.CUT_SHORT, "disconnect")])
async def test_a_body_that_is_not_whole_says_why(end, says, path):
    await Warc(path).keep(_page(end=end))
    assert _read(path)[1][1]["WARC-Truncated"] == says


@pytest.mark.parametrize("cut", [1, 100])
async def test_what_a_killed_run_left_of_a_record_is_taken_away(cut, path):
    await Warc(path).keep(_page(b"one"))
    path.write_bytes(path.read_bytes()[:-cut])

    again = Warc(path)
    await again.keep(_page(b"two"))
    await again.keep(_page(b"three"))

    pages = ["response", "request"] * 2
    assert [kind for kind, *_ in _read(path)] == ["warcinfo", "response", "warcinfo", *pages]
    assert [body for kind, *_, body in _read(path) if kind == "response"] == [b"one", b"two", b"three"]


async def test_a_file_that_is_damaged_in_the_middle_loses_nothing_more(path):
    await Warc(path).keep(_page(b"one"))
    damaged = path.read_bytes() + b"\0" * 100
    path.write_bytes(damaged)
    with pytest.raises(InvalidOption, match=f"octet {len(damaged) - 100} does not start"):
        await Warc(path).keep(_page(b"two"))
    assert path.read_bytes() == damaged


def test_a_name_that_readers_would_not_know_and_a_missing_package_are_refused(path, tmp_path, monkeypatch):
    with pytest.raises(InvalidOption, match=r"the name must end in \.warc\.gz"):
        Warc(tmp_path / "crawl.zip")
    monkeypatch.setitem(sys.modules, "warcio", None)
    with pytest.raises(InvalidOption, match=r"pip install 'polite-crawl\[warc\]'"):
        Warc(path)


def test_robots_txt_is_archived_with_its_request_redirects_and_errors(site, path):
    site.pages["/robots.txt"] = [{"status": 301, "headers": {"Location": "/rules"}, "text": "moved"}]
    site.pages["/rules"] = [{"status": 404, "text": "no such page", "headers": {"X-One": "1"}}]

    site.run("--warc", str(path), "/a", output=False)

    records = _read(path)
    found = [(kind, fields["WARC-Target-URI"].removeprefix(site.origin)) for kind, fields, *_ in records[1:]]
    assert found == [
        (kind, target) for target in ("/robots.txt", "/rules", "/a") for kind in ("response", "request")
    ]
    _, fields, head, body = records[3]
    assert (head.statusline, head.get_header("X-One"), body) == ("404 Not Found", "1", b"")
    assert fields["WARC-Truncated"] == "unspecified"
    assert records[4][2].get_header("User-Agent") == AGENT


def test_each_record_has_the_servers_address_and_the_file_the_policy_and_no_credentials(site, path):
    path = path.with_name("w\udcff.warc.gz")  # a name that is no UTF-8
    options = ("--dialect", "google", "--agent", "ExampleBot/2.0", "--header", "Cookie: id=secret")

    assert site.run("--warc", str(path), *options, "/a", "/no") == 1

    assert site.records["/a"]["file"] == path.name
    assert not (site.folder / "bodies").exists()
    (_, fields, _, info), *others = _read(path)
    assert fields["WARC-Filename"] == "w\\udcff.warc.gz"
    assert b"robots: google\r\n" in info
    assert b"http-header-user-agent: ExampleBot/2.0\r\n" in info
    bodies = [body for kind, *_, body in others if kind == "response"]
    assert bodies == [b"User-agent: *\nDisallow: /no\n", b"page /a"]
    assert {fields["WARC-IP-Address"] for _, fields, *_ in others} == {"127.0.0.1"}
    assert len(others) == 4
    assert b"secret" not in gzip.decompress(path.read_bytes())
    assert others[3][2].get_header("Cookie") == "(removed)"


@pytest.mark.parametrize(
    "octets", [b"no gzip at all", gzip.compress(b"a list of something", mtime=0), b"\x1f\x8b" + b"\xff" * 30]
)
def test_a_file_of_another_program_is_not_changed_and_ends_a_run_before_the_first_page(octets, site, path):
    path.write_bytes(octets)
    assert site.run("--warc", str(path), "/a") == 2
    assert "crawl.warc.gz: octet 0 does not start a gzipped WARC record; the file was not changed" in site.err
    assert site.paths == []
    assert path.read_bytes() == octets
