"""What a run knows of each origin, and how long all takes at least."""

from types import SimpleNamespace

import pytest

from polite.cli.fetch import origin_stats as ledger_module
from polite.cli.fetch.origin_stats import Ledger
from polite.events import BackedOff, Dropped, Granted, OriginPostponed, Refused, Retried, RobotsFetched
from polite.origin import Target

A, B = Target.of("http://a.test/1"), Target.of("http://b.test/1")


def _explained(target, *, delay, wait, held=None):
    return SimpleNamespace(
        target=target,
        pause=SimpleNamespace(seconds=delay, because=f"Crawl-delay {delay} s"),
        outlook=SimpleNamespace(because=held),
        wait_s=wait,
    )


@pytest.fixture
def ledger():
    ledger = Ledger(1.0)
    for _ in range(3):
        ledger.put(A)
    ledger.put(B)
    return ledger


def _entry(ledger, target=A):
    return next(each for each in ledger.longest(9, 0.0) if each.origin == str(target.origin))


def test_what_waits_goes_one_after_the_other(ledger):
    assert [(each.origin, each.left_s(0.0)) for each in ledger.longest(2, 0.0)] == [
        ("http://a.test", 2.0),
        ("http://b.test", 0.0),
    ]


def test_a_delay_that_became_known_counts_and_so_does_the_rest(ledger):
    ledger.explained(_explained(A, delay=5, wait=3), 100.0)

    assert _entry(ledger).left_s(100.0) == 3 + 2 * 5
    assert _entry(ledger).left_s(200.0) == 2 * 5
    assert _entry(ledger).why == "Crawl-delay 5 s"


def test_what_holds_an_origin_is_named(ledger):
    ledger.explained(_explained(A, delay=5, wait=60, held="status 429, Retry-After 60 s"), 0.0)

    assert _entry(ledger).why == "status 429, Retry-After 60 s"


def test_a_request_under_way_waits_no_more_and_is_done_when_it_is_over(ledger):
    ledger.heard(Granted(A.url, 1.0), 0.0)
    assert (_entry(ledger).waiting, _entry(ledger).out) == (2, 1)

    ledger.ended(A)
    assert (_entry(ledger).waiting, _entry(ledger).out, _entry(ledger).done) == (2, 0, 1)


def test_what_comes_back_waits_again(ledger):
    ledger.heard(Granted(B.url, 0.0), 0.0)
    ledger.heard(Retried(B.url, 1, 0.0), 0.0)
    ledger.ended(B)

    assert _entry(ledger, B).waiting == 1


@pytest.mark.parametrize("event", [Refused(B.url, "RULE", 2), Dropped(B.url, "TIMEOUT", 0)])
def test_an_origin_with_nothing_to_do_is_forgotten(event, ledger):
    ledger.heard(event, 0.0)

    assert len(ledger) == 1


def test_a_duplicate_does_not_count(ledger):
    ledger.put(B)
    ledger.not_put(B)

    assert _entry(ledger, B).waiting == 1


@pytest.mark.parametrize(
    ("event", "why", "left", "held"),
    [
        (RobotsFetched("http://b.test", "found", "FOUND", 200, 0, 0.1, 9.0), "its turn", 0, ""),
        (BackedOff("http://b.test", 503, 30.0, "status 503"), "status 503", 30, "asked for patience"),
        (
            OriginPostponed("http://b.test", 1, 60.0, "SERVER_ERROR"),
            "robots.txt: server error",
            60,
            "out of reach",
        ),
    ],
)
def test_events_say_why_an_origin_waits(event, why, left, held, ledger):
    ledger.heard(event, 100.0)

    assert (_entry(ledger, B).why, _entry(ledger, B).left_s(100.0)) == (why, left)
    assert ledger.held(100.0) == ({held: 1} if held else {})
    assert ledger.held(200.0) == {}


def test_an_origin_that_goes_on_is_ordinary_again(ledger):
    ledger.heard(BackedOff("http://a.test", 503, 500.0, "status 503"), 0.0)

    ledger.explained(_explained(A, delay=5, wait=400, held="status 503"), 0.0)
    assert ledger.held(1.0) == {"asked for patience": 1}

    ledger.explained(_explained(A, delay=5, wait=5), 400.0)
    assert ledger.held(401.0) == {}


def test_a_task_of_an_earlier_run_is_met_when_it_is_given_out():
    ledger = Ledger(1.0)

    ledger.heard(Granted(A.url, 0.0), 0.0)

    assert (_entry(ledger).waiting, _entry(ledger).out) == (0, 1)


def test_what_an_earlier_run_has_left_waits_as_long_as_was_asked_for():
    ledger = Ledger(1.0)

    ledger.left("http://a.test", 3, 20.0)
    ledger.left("http://b.test", 3, None)

    assert [each.left_s(0.0) for each in ledger.longest(2, 0.0)] == [40.0, 2.0]


def test_beyond_a_bound_origins_are_not_looked_after_one_by_one(ledger, monkeypatch):
    monkeypatch.setattr(ledger_module, "MOST", 2)
    c = Target.of("http://c.test/")

    ledger.put(c)
    for event in (Granted(c.url, 0.0), BackedOff("http://c.test", 503, 1.0, ""), Refused(c.url, "RULE", 1)):
        ledger.heard(event, 0.0)
    ledger.explained(_explained(c, delay=1, wait=1), 0.0)
    ledger.ended(c)
    ledger.not_put(c)

    assert len(ledger) == 2
