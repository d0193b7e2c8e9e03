"""Statistics by origin, and the least time that a run needs."""

from types import SimpleNamespace

import pytest

from polite.cli.fetch import progress as origin_stats_module
from polite.cli.fetch.progress import OriginStats
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
def origin_stats():
    origin_stats = OriginStats(1.0)
    for _ in range(3):
        origin_stats.add(A)
    origin_stats.add(B)
    return origin_stats


def _entry(origin_stats, target=A):
    return next(each for each in origin_stats.longest(9, 0.0) if each.origin == str(target.origin))


def test_what_waits_goes_one_after_the_other(origin_stats):
    assert [(each.origin, each.left_s(0.0)) for each in origin_stats.longest(2, 0.0)] == [
        ("http://a.test", 2.0),
        ("http://b.test", 0.0),
    ]


def test_a_new_delay_and_the_current_wait_count(origin_stats):
    origin_stats.update_delay(_explained(A, delay=5, wait=3), 100.0)

    assert _entry(origin_stats).left_s(100.0) == 3 + 2 * 5
    assert _entry(origin_stats).left_s(200.0) == 2 * 5
    assert _entry(origin_stats).why == "Crawl-delay 5 s"


def test_what_holds_an_origin_is_named(origin_stats):
    origin_stats.update_delay(_explained(A, delay=5, wait=60, held="status 429, Retry-After 60 s"), 0.0)

    assert _entry(origin_stats).why == "status 429, Retry-After 60 s"


def test_a_request_under_way_waits_no_more_and_is_done_when_it_is_over(origin_stats):
    origin_stats.observe(Granted(A.url, 1.0, A.origin.text), 0.0)
    assert (_entry(origin_stats).waiting, _entry(origin_stats).in_flight) == (2, 1)

    origin_stats.finish(A)
    assert (_entry(origin_stats).waiting, _entry(origin_stats).in_flight, _entry(origin_stats).done) == (
        2,
        0,
        1,
    )


def test_a_retried_url_waits_again(origin_stats):
    origin_stats.observe(Granted(B.url, 0.0, B.origin.text), 0.0)
    origin_stats.observe(Retried(B.url, 1, 0.0), 0.0)
    origin_stats.finish(B)

    assert _entry(origin_stats, B).waiting == 1


@pytest.mark.parametrize("event", [Refused(B.url, "RULE", 2), Dropped(B.url, "TIMEOUT", 0)])
def test_an_origin_with_nothing_to_do_is_forgotten(event, origin_stats):
    origin_stats.observe(event, 0.0)

    assert len(origin_stats) == 1


def test_a_duplicate_does_not_count(origin_stats):
    origin_stats.add(B)
    origin_stats.remove(B)

    assert _entry(origin_stats, B).waiting == 1


@pytest.mark.parametrize(
    ("event", "why", "left", "condition"),
    [
        (RobotsFetched("http://b.test", "found", "FOUND", 200, 0, 0.1, 9.0), "waiting for its turn", 0, ""),
        (BackedOff("http://b.test", 503, 30.0, "status 503"), "status 503", 30, "backing off"),
        (
            OriginPostponed("http://b.test", 1, 60.0, "SERVER_ERROR"),
            "robots.txt: the server returned 5xx",
            60,
            "unreachable",
        ),
    ],
)
def test_events_say_why_an_origin_waits(event, why, left, condition, origin_stats):
    origin_stats.observe(event, 100.0)

    assert (_entry(origin_stats, B).why, _entry(origin_stats, B).left_s(100.0)) == (why, left)
    assert origin_stats.conditions(100.0) == ({condition: 1} if condition else {})
    assert origin_stats.conditions(200.0) == {}


def test_an_origin_that_goes_on_is_ordinary_again(origin_stats):
    origin_stats.observe(BackedOff("http://a.test", 503, 500.0, "status 503"), 0.0)

    origin_stats.update_delay(_explained(A, delay=5, wait=400, held="status 503"), 0.0)
    assert origin_stats.conditions(1.0) == {"backing off": 1}

    origin_stats.update_delay(_explained(A, delay=5, wait=5), 400.0)
    assert origin_stats.conditions(401.0) == {}


def test_a_task_of_an_earlier_run_counts_when_it_is_given_out():
    origin_stats = OriginStats(1.0)

    origin_stats.observe(Granted(A.url, 0.0, A.origin.text), 0.0)

    assert (_entry(origin_stats).waiting, _entry(origin_stats).in_flight) == (0, 1)


def test_what_an_earlier_run_has_left_waits_as_long_as_was_asked_for():
    origin_stats = OriginStats(1.0)

    origin_stats.add_resumed("http://a.test", 3, 20.0)
    origin_stats.add_resumed("http://b.test", 3, None)

    assert [each.left_s(0.0) for each in origin_stats.longest(2, 0.0)] == [40.0, 2.0]
    assert {each.why for each in origin_stats.longest(2, 0.0)} == {"waiting for its turn"}


def test_beyond_a_bound_origins_are_not_looked_after_one_by_one(origin_stats, monkeypatch):
    monkeypatch.setattr(origin_stats_module, "MAX_ORIGINS", 2)
    c = Target.of("http://c.test/")

    origin_stats.add(c)
    for event in (
        Granted(c.url, 0.0, c.origin.text),
        BackedOff("http://c.test", 503, 1.0, ""),
        Refused(c.url, "RULE", 1),
    ):
        origin_stats.observe(event, 0.0)
    origin_stats.update_delay(_explained(c, delay=1, wait=1), 0.0)
    origin_stats.finish(c)
    origin_stats.remove(c)

    assert len(origin_stats) == 2
