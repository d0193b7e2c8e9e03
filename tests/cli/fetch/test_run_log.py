"""What a run writes down, and what becomes of what it cannot."""

import io
import json

import pytest

from polite.cli.fetch.event_log import Journal
from polite.cli.fetch.origin_stats import Ledger
from polite.cli.fetch.record import Records
from polite.cli.fetch.run_log import Notes
from polite.errors import InvalidURL
from polite.events import Dropped, OriginPostponed, Refused
from polite.origin import Origin
from polite.testing import ManualClock


class Full(io.StringIO):
    def write(self, text):
        raise OSError(28, "No space left on device")


def _notes(out, *, recorded=(), journal=None):
    clock = ManualClock()
    if journal is not None:
        journal = Journal(journal, clock.monotonic, wall=clock.wall())
    return Notes(Records(out), set(recorded), Ledger(1.0), journal, clock)


async def test_what_the_gate_tells_and_nobody_can_write_is_kept_once():
    notes = _notes(Full())

    for _ in range(2):
        notes(Refused("http://a.test/", "RULE", 2))

    with pytest.raises(OSError, match="No space"):
        await notes.failure


async def test_what_was_given_up_has_a_record():
    out = io.StringIO()

    _notes(out)(Dropped("http://a.test/", "TIMEOUT", 1))

    assert json.loads(out.getvalue()) == {
        "url": "http://a.test/",
        "outcome": "given up",
        "reason": "TIMEOUT",
        "tries": 1,
    }


async def test_an_invalid_line_is_recorded_once_over_several_runs():
    out = io.StringIO()
    notes = _notes(out, recorded={"nonsense"})

    notes.invalid(InvalidURL("nonsense", "no scheme"))
    notes.invalid(InvalidURL("more", "no scheme"))

    assert [json.loads(line)["url"] for line in out.getvalue().splitlines()] == ["more"]


async def test_the_log_counts_from_its_beginning():
    log, clock = io.StringIO(), ManualClock()
    journal = Journal(log, clock.monotonic, wall=clock.wall())

    clock.advance(5)
    journal.requested(Origin.of("http://a.test"), "http://a.test/", at=clock.monotonic() - 2, status=200)

    assert json.loads(log.getvalue().splitlines()[-1])["t"] == 3.0


async def test_the_log_has_origins_that_are_put_off():
    log = io.StringIO()

    _notes(io.StringIO(), journal=log)(OriginPostponed("http://a.test", 3, 60.0, "TIMEOUT"))

    assert json.loads(log.getvalue().splitlines()[-1]) == {
        "t": 0.0,
        "event": "put off",
        "origin": "http://a.test",
        "for_s": 60.0,
        "because": "TIMEOUT",
    }
