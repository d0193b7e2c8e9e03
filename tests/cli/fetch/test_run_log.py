"""What a run records, and how it handles write errors."""

import io
import json

import pytest

from polite.cli.fetch.lists import RepeatedLines
from polite.cli.fetch.progress import OriginStats
from polite.cli.fetch.record import EventLog, Records, RunLog
from polite.events import Dropped, OriginPostponed, Refused
from polite.origin import Origin
from polite.testing import ManualClock

URL = "http://a.test/"


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")


def _run_log(out, *, recorded=None, event_log=None):
    clock = ManualClock()
    if event_log is not None:
        event_log = EventLog(event_log, clock.monotonic, wall=clock.wall())
    return RunLog(Records(out), recorded or {}, RepeatedLines(), OriginStats(1.0), event_log, clock)


async def test_a_write_error_in_a_listener_is_kept_once():
    run_log = _run_log(Full())

    for _ in range(2):
        run_log(Refused("http://a.test/", "RULE", 2))

    with pytest.raises(OSError, match="No space"):
        await run_log.failure


@pytest.mark.parametrize(
    ("before", "outcome", "records"),
    [
        ("given up", "refused", 1),
        ("failed", "given up", 1),
        ("given up", "given up", 0),
        ("fetched", "refused", 0),
    ],
)
async def test_only_another_outcome_of_what_was_not_fetched_has_a_record(before, outcome, records):
    out = io.StringIO()
    event = Refused(URL, "RULE", 2) if outcome == "refused" else Dropped(URL, "max_tries=9", 9)
    run_log = _run_log(out, recorded={URL: before})

    run_log(event)

    assert out.getvalue().count(f'"outcome": "{outcome}"') == records
    assert bool(run_log.records.gravest) is (before != "fetched")


async def test_what_was_given_up_has_a_record():
    out = io.StringIO()

    _run_log(out)(Dropped("http://a.test/", "SERVER_ERROR", 1))

    assert json.loads(out.getvalue()) == {
        "url": "http://a.test/",
        "input": "http://a.test/",
        "outcome": "given up",
        "code": "ROBOTS_SERVER_ERROR",
        "detail": "the server returned 5xx; robots.txt is unreachable, so no page was requested",
        "tries": 1,
    }


@pytest.mark.parametrize(
    ("because", "code", "detail"),
    [
        (
            "DNS_NXDOMAIN",
            "ROBOTS_DNS_NXDOMAIN",
            "the name does not exist; robots.txt is unreachable, so no page was requested",
        ),
        (
            "PacingPolicy.max_pages=2: so many pages were requested",
            "MAX_PAGES",
            "--max-pages=2: so many pages were requested",
        ),
        ("max_tries=3", "MAX_TRIES", "too many attempts (--tries)"),
        ("the server asks for a price: USD 1", "PAGE_DEMAND", "the server asks for a price: USD 1"),
        ("OSError", "NO_TURN", "OSError"),
    ],
)
async def test_what_was_given_up_says_why_the_cause_first(because, code, detail):
    out = io.StringIO()

    _run_log(out)(Dropped("http://a.test/", because, 1))

    record = json.loads(out.getvalue())
    assert (record["code"], record["detail"]) == (code, detail)


async def test_the_log_counts_from_its_beginning():
    log, clock = io.StringIO(), ManualClock()
    event_log = EventLog(log, clock.monotonic, wall=clock.wall())

    clock.advance(5)
    event_log.write_request(
        Origin.of("http://a.test"), "http://a.test/", at=clock.monotonic() - 2, status=200
    )

    assert json.loads(log.getvalue().splitlines()[-1])["t"] == 3.0


async def test_the_log_has_origins_that_are_put_off():
    log = io.StringIO()

    _run_log(io.StringIO(), event_log=log)(OriginPostponed("http://a.test", 3, 60.0, "TIMEOUT"))

    assert json.loads(log.getvalue().splitlines()[-1]) == {
        "t": 0.0,
        "event": "put off",
        "origin": "http://a.test",
        "for_s": 60.0,
        "because": "TIMEOUT",
    }
