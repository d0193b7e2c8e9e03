"""Pages that are busy, fail, or have an invalid status."""

import asyncio

import pytest
from aiohttp import web

from tests.cli.fetch.conftest import ROBOTS, drop, raw


def test_a_busy_page_is_retried_after_retry_after(site):
    site.pages["/busy"] = [{"status": 503, "headers": {"Retry-After": "40"}}, {"text": "now"}]

    assert site.run("/busy") == 0

    assert site.times[1] - site.times[0] >= 40
    assert site.records["/busy"]["tries"] == 2
    assert site.records["/busy"]["status"] == 200


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_page_that_stays_busy_is_given_up_and_recorded_with_its_last_response(status, site):
    site.pages["/busy"] = [{"status": status, "text": "busy"}]

    assert site.run("--tries", "2", "/busy") == 3

    record = site.records["/busy"]
    assert (record["outcome"], record["status"], record["tries"]) == ("given up", status, 2)
    assert record["code"] == "PAGE_STATUS"
    assert record["detail"] == f"status {status} is retried, and this was the last attempt (--tries)"
    assert (site.folder / record["file"]).read_bytes() == b"busy"
    assert len(site.paths) == 2


def test_a_page_with_one_try_is_given_up_at_once(site):
    site.pages["/busy"] = [{"status": 429}]

    assert site.run("--tries", "1", "/busy") == 3
    assert site.records["/busy"]["code"] == "PAGE_STATUS"


def test_a_page_that_does_not_exist_is_a_response_and_counts_as_one(site):
    site.pages["/gone"] = [{"status": 404}]

    assert site.run("/gone", "/a") == 0
    assert "  2 fetched (" in site.err
    assert "/s, 1 with status 4xx or 5xx), 0 waiting" in site.err
    assert (site.records["/gone"]["outcome"], site.records["/gone"]["status"]) == ("fetched", 404)


def test_a_page_without_a_response_fails_after_exactly_its_tries(site):
    site.pages["/gone"] = [drop]

    assert site.run("/gone") == 3
    assert site.records["/gone"]["outcome"] == "failed"
    assert site.records["/gone"]["code"] == "PAGE_CONNECTION_LOST"
    assert site.records["/gone"]["detail"] == (
        "the connection was closed before the response was complete; the page was not fetched"
    )
    assert len(site.paths) == 3


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"099 X", "status 99 is not a final response"),
        (b"000", "status 0 is not a final response"),
        (b"101 Switching Protocols", "status 101 is not a final response"),
    ],
)
def test_a_page_with_an_invalid_status_is_retried_and_fails(head, says, site):
    site.pages["/odd"] = [raw(b"HTTP/1.1 " + head + b"\r\nContent-Length: 0\r\n\r\n")]

    assert site.run("/odd", "/a") == 3
    assert (site.records["/odd"]["outcome"], site.records["/a"]["outcome"]) == ("failed", "fetched")
    assert says in site.records["/odd"]["detail"]
    assert site.paths.count("/odd") == 3


def test_a_robots_txt_with_an_invalid_status_does_not_end_the_run(site):
    site.pages[ROBOTS] = [raw(b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n")]

    assert site.run("/a") == 3
    assert site.records["/a"]["code"] == "ROBOTS_ODD_STATUS"


def test_a_page_that_exceeds_the_timeout_fails(site):
    async def hang(request):
        await asyncio.sleep(1_000)

    site.pages["/slow"] = [hang]

    assert site.run("--timeout", "7", "--tries", "1", "/slow") == 3
    assert site.records["/slow"]["code"] == "PAGE_TIMEOUT"
    assert (
        site.records["/slow"]["detail"]
        == "no complete response within 7 s (--timeout); the page was not fetched"
    )


def _restarting(site, down_s, after):
    """Return a response after which the site refuses connections for so long, if `after` is its path."""

    async def respond(request):
        await site.restart(down_s)
        return web.Response(text="the last one", headers={"Connection": "close"})

    site.pages[after] = [respond, {"text": "again"}]


def test_pages_of_a_site_that_restarts_are_fetched(site):
    _restarting(site, 300, after="/a")

    assert site.run("/a", "/b", "/c") == 0

    assert site.paths == ["/a", "/b", "/c"]
    assert 300 <= site.took_s < 600


def test_a_robots_txt_of_a_site_that_restarts_is_fetched(site):
    site.pages[ROBOTS] = [*[{"status": 502}] * 4, {"text": ""}]

    assert site.run("/a") == 0

    assert site.paths == ["/a"]
    assert site.took_s > 60


def test_a_page_has_all_its_tries_after_an_outage(site):
    _restarting(site, 100, after="/a")
    site.pages["/b"] = [{"status": 502}, {"status": 502}, {"text": "now"}]

    assert site.run("/a", "/b") == 0

    assert site.paths == ["/a", "/b", "/b", "/b"]


@pytest.mark.parametrize(
    ("options", "shortest", "longest"), [((), 600, 1_200), (("--max-outage", "0"), 1, 10)]
)
def test_a_site_that_stays_away_is_given_up_after_the_outage_that_may_be(options, shortest, longest, site):
    _restarting(site, 30_000, after="/a")

    assert site.run(*options, "/a", "/b") == 3

    assert site.records["/b"]["outcome"] == "failed"
    assert shortest <= site.took_s <= longest


@pytest.mark.parametrize("value", ["-1", "nan", "1e9", "soon"])
def test_an_outage_that_is_no_time_is_wrong_usage(value, site):
    with pytest.raises(SystemExit) as left:
        site.run(f"--max-outage={value}", "/a")

    assert left.value.code == 2
