"""`--recrawl FILE`: a later run requests pages only if they changed."""

import asyncio

import pytest
from aiohttp import web
from warcio.archiveiterator import ArchiveIterator

from tests.cli.fetch.conftest import raw


def with_tag(tag, body="text", seen=None):
    """A page with an ETag, which answers a matching condition with a 304."""

    async def respond(request):
        if seen is not None:
            seen.append(request.headers.get("If-None-Match"))
        headers = {"ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(text=body, headers=headers)

    return respond


def run(site, number, *arguments):
    site.folder = site.folder.parent / f"run{number}"
    return site.run("--recrawl", str(site.folder.parent / "pages.sqlite"), *arguments)


def test_a_second_run_gets_304s_and_what_has_changed(site):
    site.pages |= {"/a": [with_tag('"1"')], "/b": [with_tag('"1"'), with_tag('W/"2"', "newer")]}

    assert (run(site, 1, "/a", "/b"), run(site, 2, "/a", "/b"), run(site, 3, "/a", "/b")) == (0, 0, 0)

    assert [site.records[path]["status"] for path in ("/a", "/b")] == [304, 304]
    site.folder = site.folder.parent / "run2"
    a, b = (site.records[path] for path in ("/a", "/b"))
    assert (a["outcome"], a["status"], a["file"], a["length"]) == ("fetched", 304, None, 0)
    assert (b["status"], (site.folder / b["file"]).read_text()) == (200, "newer")


def test_without_the_option_no_condition_is_sent(site):
    seen = []
    site.pages["/a"] = [with_tag('"1"', seen=seen)]

    run(site, 1, "/a")
    site.folder = site.folder.parent / "plain"
    site.run("/a")

    assert seen == [None, None]


@pytest.mark.parametrize(
    ("arguments", "response"),
    [
        (("--max-bytes", "3"), with_tag('"1"')),
        (("--tries", "1"), raw(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 9\r\n\r\nhalf')),
        (
            ("--tries", "1"),
            raw(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf'),
        ),
    ],
    ids=["capped", "cut short", "corrupt"],
)
def test_a_page_that_was_not_read_whole_is_requested_whole_again(site, arguments, response):
    seen = []
    site.pages["/a"] = [response, with_tag('"1"', seen=seen)]

    run(site, 1, *arguments, "/a")
    run(site, 2, "/a")

    assert seen == [None]
    assert site.records["/a"]["status"] == 200


def test_a_page_that_timed_out_after_its_head_is_requested_whole_again(site):
    async def stall(request):
        response = web.StreamResponse(headers={"ETag": '"1"', "Content-Length": "9"})
        await response.prepare(request)
        await asyncio.sleep(100)
        return response

    seen = []
    site.pages["/a"] = [stall, with_tag('"1"', seen=seen)]

    assert run(site, 1, "--tries", "1", "--timeout", "5", "/a") == 3
    assert run(site, 2, "/a") == 0

    assert seen == [None]


def test_a_warc_has_a_revisit_record_for_a_304(site):
    site.pages["/a"] = [with_tag('"1"')]
    warc = site.folder.parent / "crawl.warc.gz"

    for number in (1, 2):
        run(site, number, "--warc", str(warc), "/a")

    with warc.open("rb") as file:
        found = [
            (record.rec_type, record.rec_headers.get_header("WARC-Profile"))
            for record in ArchiveIterator(file)
        ]
    assert [kind for kind, _ in found] == [
        "warcinfo",
        *["response", "request"] * 2,  # robots.txt, and the page
        "warcinfo",
        *["response", "request"],
        *["revisit", "request"],
    ]
    assert found[8][1].endswith("/revisit/server-not-modified")


@pytest.mark.parametrize("name", ["", ":memory:", "redis://host/0"])
def test_what_is_no_file_is_refused(site, name):
    assert site.run("--recrawl", name, "/a") == 2

    assert "--recrawl must be the name of a file" in site.err
    assert site.asked == []


def test_a_file_of_something_else_is_refused_before_the_first_request(site):
    file = site.folder.parent / "pages.sqlite"
    site.run("--resume", str(file), "/a")
    before = len(site.asked)

    assert run(site, 2, "/a") != 0
    assert "is the queue of a crawl" in site.err
    assert len(site.asked) == before


def test_two_options_cannot_share_the_file(site):
    file = str(site.folder.parent / "pages.sqlite")

    assert site.run("--recrawl", file, "--log", file, "/a") == 2
    assert "would both write" in site.err
