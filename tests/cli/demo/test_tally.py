"""What the gate told, by host."""

import polite
from polite.cli.demo.tally import Tally
from polite.events import Granted, Refused, RobotsFetched

REFUSED = Refused("http://a.test:8080/x", "RULE", 3)


def test_refusals_are_counted_by_line():
    tally = Tally()

    for _ in range(2):
        tally(REFUSED)

    assert tally.refused == {"a.test": {"line 3": 2}}


def test_a_refusal_without_a_line_is_counted_by_its_reason():
    tally = Tally()

    tally(Refused("http://a.test/", polite.Reason.UNREACHABLE.name, None))

    assert tally.refused == {"a.test": {"unreachable": 1}}


def test_of_a_robots_fetch_the_last_outcome_is_kept():
    tally = Tally()

    for outcome, status in (("unreachable", None), ("found", 200)):
        tally(RobotsFetched("http://a.test:8080", outcome, "OK", status, 0, 0.1, 60.0))
        said = tally.robots["a.test"]
        assert said == (outcome if status is None else "found (200)")


def test_other_events_are_passed_over():
    tally = Tally()

    tally(Granted("http://a.test/", 0.1))

    assert (tally.refused, tally.robots) == ({}, {})
