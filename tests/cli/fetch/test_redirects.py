"""Redirects of pages."""

import pytest

from polite.errors import Overloaded
from polite.frontier.frontier import Frontier
from tests.cli.fetch.conftest import raw


def test_a_redirect_takes_a_turn_of_its_own(site):
    site.pages["/old"] = [{"status": 301, "headers": {"Location": "/new"}}]

    assert site.run("--delay", "5", "/old") == 0

    assert site.paths == ["/old", "/new"]
    assert site.times[1] - site.times[0] >= 5
    assert site.records["/old"]["location"] == f"{site.origin}/new"
    assert site.records["/new"]["from"] == f"{site.origin}/old"


def test_a_redirect_to_a_disallowed_url_is_not_followed(site):
    site.pages["/old"] = [{"status": 302, "headers": {"Location": "/no"}}]

    assert site.run("/old") == 1
    assert site.paths == ["/old"]
    assert site.records["/no"]["outcome"] == "refused"


@pytest.mark.parametrize(("limit", "requests"), [("0", 1), ("2", 3)])
def test_redirects_in_a_row_have_a_limit(limit, requests, site):
    for number in range(9):
        site.pages[f"/{number}"] = [{"status": 307, "headers": {"Location": f"/{number + 1}"}}]

    site.run("--max-redirects", limit, "/0")

    assert len(site.paths) == requests
    last = site.records[site.paths[-1]]
    assert last["code"] == "PAGE_TOO_MANY_REDIRECTS"
    assert last["detail"] == f"more than {limit} redirects (--max-redirects); the last one was not followed"


def test_a_redirect_to_itself_is_not_requested_again(site):
    site.pages["/a"] = [{"status": 302, "headers": {"Location": "/a"}}]

    assert site.run("/a") == 0
    assert site.paths == ["/a"]


@pytest.mark.parametrize(("location", "says"), [("ftp://x/y", "only http"), ("http://x:99999/", "port")])
def test_a_redirect_to_an_invalid_url_is_recorded_and_not_followed(location, says, site):
    site.pages["/old"] = [{"status": 302, "headers": {"Location": location}}]

    assert site.run("/old") == 0
    assert site.records["/old"]["code"] == "PAGE_REDIRECT_INVALID"
    assert site.records["/old"]["detail"].endswith("; the redirect was not followed")
    assert says in site.records["/old"]["detail"]


def test_a_redirect_beyond_the_capacity_is_requested_again(site, monkeypatch):
    site.pages["/old"] = [{"status": 302, "headers": {"Location": "/new"}}]
    put, full = Frontier.put, [True]

    async def full_at_first(self, url, **options):
        if url.endswith("/new") and full:
            full.pop()
            raise Overloaded("full")
        return await put(self, url, **options)

    monkeypatch.setattr(Frontier, "put", full_at_first)

    assert site.run("/old") == 0
    assert site.paths == ["/old", "/old", "/new"]
    assert site.records["/new"]["from"] == f"{site.origin}/old"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/ü?€".encode(), "/%C3%BC?%E2%82%AC"),
        (b"/\xff\xfe", "/%FF%FE"),
        (b"/%0d%0aX:%20y", "/%0d%0aX:%20y"),
    ],
)
def test_a_redirect_keeps_the_octets_that_the_server_sent(location, path, site):
    site.pages["/old"] = [
        raw(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")
    ]

    site.run("/old")

    assert site.records["/old"]["location"] == f"{site.origin}{path}"
