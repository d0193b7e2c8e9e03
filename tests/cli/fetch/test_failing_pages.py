"""Pages that are busy, fail, or have an invalid status."""

import asyncio

import pytest

from tests.cli.fetch.conftest import ROBOTS, drop, raw


def test_a_busy_page_is_retried_after_retry_after(site):
    site.pages["/busy"] = [{"status": 503, "headers": {"Retry-After": "40"}}, {"text": "now"}]

    assert site.run("/busy") == 0

    assert site.times[1] - site.times[0] >= 40
    assert site.records["/busy"]["tries"] == 2
    assert site.records["/busy"]["status"] == 200


def test_a_page_that_stays_busy_is_recorded_with_its_status(site):
    site.pages["/busy"] = [{"status": 503, "text": "busy"}]

    assert site.run("--tries", "2", "/busy") == 0
    assert (site.records["/busy"]["status"], site.records["/busy"]["tries"]) == (503, 2)
    assert len(site.paths) == 2


def test_a_page_without_a_response_fails_after_exactly_its_tries(site):
    site.pages["/gone"] = [drop]

    assert site.run("/gone") == 3
    assert site.records["/gone"]["outcome"] == "failed"
    assert "ConnectionLost" in site.records["/gone"]["reason"]
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
    assert says in site.records["/odd"]["reason"]
    assert site.paths.count("/odd") == 3


def test_a_robots_txt_with_an_invalid_status_does_not_end_the_run(site):
    site.pages[ROBOTS] = [raw(b"HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n")]

    assert site.run("/a") == 3
    assert site.records["/a"]["reason"] == "ODD_STATUS"


def test_a_page_that_exceeds_the_timeout_fails(site):
    async def hang(request):
        await asyncio.sleep(1_000)

    site.pages["/slow"] = [hang]

    assert site.run("--timeout", "7", "--tries", "1", "/slow") == 3
    assert site.records["/slow"]["reason"] == "TimeoutError: no complete response within 7 s (--timeout)"
