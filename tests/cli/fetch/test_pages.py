"""`polite fetch` from its command line to the server's own log, in virtual time: responses, failures, redirects and bodies."""

import asyncio
import gzip
import hashlib
import json
from collections import Counter

import pytest
from aiohttp import web

from polite.errors import StoreFailed, TurnLost
from polite.gate.gate import Gate
from polite.gate.permit import Permit
from polite.robots.exchange import Reply
from polite.transports.http import HttpTransport
from tests.cli.fetch.conftest import ROBOTS, drop, raw


def test_each_url_has_one_record_and_its_body_in_the_folder(site):
    assert site.run("/a", "/b", "/a") == 0

    assert list(site.records) == ["/a", "/b"]
    record = site.records["/a"]
    assert (record["outcome"], record["status"], record["length"], record["tries"]) == ("fetched", 200, 7, 1)
    assert record["headers"] == {"content-type": "text/plain; charset=utf-8"}
    assert record["sha256"] == hashlib.sha256(b"page /a").hexdigest()
    assert (site.folder / record["file"]).read_bytes() == b"page /a"
    assert record["body"] is None
    assert record["fetched_at"].startswith("2023-11-14T22:13:2")


def test_robots_txt_comes_first_and_pages_follow_one_delay_apart(site):
    site.run("--delay", "3", "/a", "/b", "/c")
    (queued_at, first), *_ = site.asked
    assert (first, [round(at - queued_at) for at in site.times]) == ("/robots.txt", [3, 6, 9])
    assert site.records["/c"]["waited_s"] >= 9


def test_a_refused_url_is_recorded_with_its_line_and_not_requested(site):
    assert site.run("/no/diary", "/a") == 1
    url = f"{site.origin}/no/diary"
    why = {"outcome": "refused", "code": "RULE", "detail": "Disallow: /no", "line": 2}
    assert (site.records["/no/diary"], site.paths) == ({"url": url, "input": url, **why}, ["/a"])


def test_an_invalid_url_does_not_affect_the_others(site):
    assert site.run("nonsense", "ftp://127.0.0.1/x", "a.test:18931", "/a") == 2
    assert site.records["nonsense"]["outcome"] == "invalid"
    assert site.records["ftp://127.0.0.1/x"]["detail"] == "only http and https pages are fetched"
    assert "did you mean http://a.test:18931?" in site.records["a.test:18931"]["detail"]
    assert site.records["/a"]["outcome"] == "fetched"


def test_an_origin_without_rules_is_given_up_after_its_tries(site):
    site.pages[ROBOTS] = [{"status": 500}]
    assert site.run("--tries", "2", "--max-outage", "0", "/a") == 3
    assert (site.records["/a"]["outcome"], site.records["/a"]["code"]) == ("given up", "ROBOTS_SERVER_ERROR")
    assert len(site.asked) == 2


def test_a_busy_page_is_retried_after_retry_after(site):
    site.pages["/busy"] = [{"status": 503, "headers": {"Retry-After": "40"}}, {"text": "now"}]
    assert site.run("/busy") == 0
    assert site.times[1] - site.times[0] >= 40
    assert (site.records["/busy"]["tries"], site.records["/busy"]["status"]) == (2, 200)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_page_that_stays_busy_is_given_up_and_recorded_with_its_last_response(status, site):
    site.pages["/busy"] = [{"status": status, "text": "busy"}]
    assert site.run("--tries", "2", "/busy") == 3
    record = site.records["/busy"]
    assert (record["outcome"], record["code"], record["status"]) == ("given up", "PAGE_STATUS", status)
    assert (record["tries"], len(site.paths)) == (2, 2)
    assert (site.folder / record["file"]).read_bytes() == b"busy"


async def _hang(request):
    await asyncio.sleep(1_000)


@pytest.mark.parametrize(
    ("response", "code", "says"),
    [
        (_hang, "PAGE_TIMEOUT", "no complete response within 7 s (--timeout)"),
        (drop, "PAGE_CONNECTION_LOST", "the connection was closed before the response was complete"),
        (raw(b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n"), "PAGE_PROTOCOL_ERROR", "status 99 is not a final response"),
        (raw(b"HTTP/1.1 101 Switching\r\n\r\n"), "PAGE_PROTOCOL_ERROR", "status 101 is not a final response"),
    ],
)  # fmt: skip
def test_a_page_without_a_response_fails_after_exactly_its_tries(response, code, says, site):
    site.pages["/odd"] = [response]
    assert site.run("--timeout", "7", "/odd", "/a") == 3
    record = site.records["/odd"]
    assert (record["outcome"], record["code"]) == ("failed", code)
    assert record["detail"] == f"{says}; the page was not fetched"
    assert (site.paths.count("/odd"), site.records["/a"]["outcome"]) == (3, "fetched")


def _restarting(site, down_s, after):
    """Return a response after which the site refuses connections for so long, if `after` is its path."""

    async def respond(request):
        await site.restart(down_s)
        return web.Response(text="the last one", headers={"Connection": "close"})

    site.pages[after] = [respond, {"text": "again"}]


def test_pages_of_a_site_that_restarts_are_fetched_and_have_all_their_tries(site):
    _restarting(site, 300, after="/a")
    site.pages["/b"] = [{"status": 408}, {"status": 408}, {"text": "now"}]
    assert site.run("/a", "/b") == 0
    assert site.paths == ["/a", "/b", "/b", "/b"]
    assert 300 <= site.took_s < 600


@pytest.mark.parametrize("more", [0, 3, 12])
@pytest.mark.parametrize(
    ("options", "shortest", "longest"), [((), 600, 1_300), (("--max-outage", "0"), 1, 10)]
)
def test_a_site_that_stays_away_is_given_up_after_the_outage_allowed(options, shortest, longest, more, site):
    _restarting(site, 3_000_000, after="/a")
    others = [f"/b{each}" for each in range(more)]

    assert site.run(*options, "/a", "/b", *others) == 3

    assert Counter(site.records[path]["code"] for path in ("/b", *others))["MAX_OUTAGE"] == more
    assert {site.records[path]["outcome"] for path in ("/b", *others)} == {"failed", "given up"} - (
        set() if more else {"given up"}
    )
    assert shortest <= site.took_s <= longest


def _redirect(location, status=302):
    return {"status": status, "headers": {"Location": location}}


def test_a_redirect_takes_a_turn_of_its_own(site):
    site.pages["/old"] = [_redirect("/new", 301)]
    assert site.run("--delay", "5", "/old") == 0
    assert site.paths == ["/old", "/new"]
    assert site.times[1] - site.times[0] >= 5
    assert site.records["/old"]["location"] == f"{site.origin}/new"
    assert site.records["/new"]["from"] == f"{site.origin}/old"


def test_a_redirect_to_a_disallowed_or_known_url_is_not_followed(site):
    site.pages |= {"/old": [_redirect("/no")], "/a": [_redirect("/a")]}
    assert site.run("/old", "/a") == 1
    assert (sorted(site.paths), site.records["/no"]["outcome"]) == (["/a", "/old"], "refused")


@pytest.mark.parametrize(("limit", "requests"), [("0", 1), ("2", 3)])
def test_redirects_in_a_row_have_a_limit(limit, requests, site):
    for number in range(9):
        site.pages[f"/{number}"] = [_redirect(f"/{number + 1}", 307)]
    site.run("--max-redirects", limit, "/0")
    assert len(site.paths) == requests
    assert site.records[site.paths[-1]]["code"] == "PAGE_TOO_MANY_REDIRECTS"


@pytest.mark.parametrize(
    ("location", "path"), [("/ü?€".encode(), "/%C3%BC?%E2%82%AC"), (b"/\xff\xfe", "/%FF%FE"), (b"/%0d%0aX:%20y", "/%0d%0aX:%20y")]
)  # fmt: skip
def test_a_redirect_keeps_the_octets_that_the_server_sent(location, path, site):
    site.pages["/old"] = [
        raw(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n")
    ]
    site.run("/old")
    assert site.records["/old"]["location"] == f"{site.origin}{path}"


@pytest.mark.parametrize(
    ("response", "kept", "body"),
    [
        ({"body": b"x" * 10}, b"x" * 10, None),
        ({"body": b"x" * 11}, b"x" * 10, "capped"),
        ({"body": gzip.compress(b"x" * 10), "headers": {"Content-Encoding": "gzip"}}, b"x" * 10, "capped"),
        ({"body": gzip.compress(b"\0" * 1_000_000), "headers": {"Content-Encoding": "gzip"}}, b"\0" * 10, "capped"),
        ({"body": b"brotli", "headers": {"Content-Encoding": "br"}}, b"brotli", "unknown coding"),
        ({"body": b"no gzip", "headers": {"Content-Encoding": "gzip"}}, b"", "corrupt"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), b"half", "cut short"),
    ],
)  # fmt: skip
def test_a_body_is_kept_up_to_the_limit_decoded_or_not(response, kept, body, site):
    site.pages["/a"] = [response]
    site.run("--max-bytes", "10", "/a")
    record = site.records["/a"]
    assert (record["length"], record["body"]) == (len(kept), body)
    assert record["file"] is None if not kept else (site.folder / record["file"]).read_bytes() == kept


def test_a_turn_that_is_lost_while_it_connects_sends_nothing_and_is_tried_again(site, monkeypatch):
    asked, require = [], Permit.require

    def lose_first(permit):
        asked.append(permit.url)
        if len(asked) == 1:
            raise TurnLost("lost", url=permit.url)
        require(permit)

    async def fail(*_):
        raise StoreFailed("away")

    monkeypatch.setattr(Permit, "require", lose_first)
    # A store that does not respond after a page ends no run, either.
    monkeypatch.setattr(Gate, "explain", fail)
    assert site.run("--concurrency", "1", "/a", "/b") == 0

    assert sorted(site.paths) == ["/a", "/b"]
    assert asked[0] in asked[1:]


@pytest.fixture
def no_rules(monkeypatch):
    async def missing(self, ask):
        return Reply(404)

    monkeypatch.setattr(HttpTransport, "get", missing)


def test_a_page_at_a_private_address_is_not_retried(site, no_rules, tmp_path):
    log = tmp_path / "run.jsonl"
    assert site.run("--log", str(log), "/a", private=False) == 3
    record = site.records["/a"]
    assert (record["outcome"], record["tries"]) == ("given up", 1)
    assert "127.0.0.1 is not public, so it is blocked; use --allow-private to permit it" in record["detail"]
    asked = {each["event"]: each.get("asked") for each in map(json.loads, log.read_text().splitlines())}
    assert asked == {"run": None, "robots": True, "request": False}


def test_a_private_address_is_blocked_by_default(site):
    assert site.run("/a", private=False) == 3
    assert site.records["/a"]["code"] == "ROBOTS_ADDRESS_REFUSED"
    assert (site.asked, site.took_s < 1) == ([], True)
