"""Bodies of pages: limits, codings, and broken connections."""

import gzip

import pytest
from aiohttp import web


@pytest.mark.parametrize(
    ("response", "kept", "body"),
    [
        ({"body": b"x" * 10}, b"x" * 10, None),
        ({"body": b"x" * 11}, b"x" * 10, "capped"),
        ({"body": gzip.compress(b"x" * 10), "headers": {"Content-Encoding": "gzip"}}, b"x" * 10, "capped"),
        ({"body": b"brotli", "headers": {"Content-Encoding": "br"}}, b"brotli", "unknown coding"),
        ({"body": b"brotli longer", "headers": {"Content-Encoding": "br"}}, b"brotli lon", "capped"),
        ({"body": b"no gzip", "headers": {"Content-Encoding": "gzip"}}, b"", "corrupt"),
    ],
)
def test_a_body_is_kept_up_to_the_limit_decoded_or_not(response, kept, body, site):
    site.pages["/a"] = [response]

    site.run("--max-bytes", "10", "/a")

    record = site.records["/a"]
    assert (record["length"], record["body"]) == (len(kept), body)
    assert record["file"] is None if not kept else (site.folder / record["file"]).read_bytes() == kept


def test_a_decompression_bomb_is_cut_at_the_limit(site):
    bomb = gzip.compress(b"\0" * 1_000_000)
    site.pages["/a"] = [{"body": bomb, "headers": {"Content-Encoding": "gzip"}}]

    site.run("--max-bytes", "2000", "/a")

    assert (site.records["/a"]["length"], site.records["/a"]["body"]) == (2_000, "capped")


def test_a_body_that_breaks_off_is_recorded_as_cut_short(site):
    async def cut(request):
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        request.transport.close()
        return response

    site.pages["/a"] = [cut]

    site.run("/a")

    assert (site.records["/a"]["length"], site.records["/a"]["body"]) == (4, "cut short")


@pytest.mark.parametrize(
    ("arguments", "output", "said"),
    [
        ((), False, True),
        (("--quiet",), False, False),
        ((), True, False),
        (("--warc", "a.warc.gz"), False, False),
    ],
)
def test_a_run_that_keeps_no_bodies_says_so_once(arguments, output, said, site, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    assert site.run(*arguments, "/a", "/b", output=output) == 0
    assert site.err.count("polite: bodies are not kept; --output DIR or --warc FILE keeps them\n") == said
