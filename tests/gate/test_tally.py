"""Tally count what happens at a gate, under a bounded number of keys."""

import pytest

from polite.events import (
    BackedOff,
    Dropped,
    LicenseRequired,
    OriginPostponed,
    PaymentRequired,
    Refused,
    Retried,
    RobotsFetched,
    Skipped,
    StoreAway,
)
from polite.gate.tally import BOUNDS_S, Histogram, Tally

ORIGIN = "https://site.test"


def counted(*events: object) -> Tally:
    tally = Tally()
    for event in events:
        tally(event)  # type: ignore[arg-type]
    return tally


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (0.005, 0), (0.0051, 1), (1.0, 7), (86_400.0, 17), (86_401.0, 18), (1e300, 18)],
)
def test_a_bound_belongs_to_the_bucket_below_it(seconds: float, bucket: int) -> None:
    histogram = Histogram()

    histogram.add(seconds)

    assert histogram.counts.index(1) == bucket
    assert histogram.total_s == seconds
    assert len(histogram.counts) == len(BOUNDS_S) + 1


def test_permits_and_tasks_are_timed_apart() -> None:
    tally = Tally()

    tally.granted(0.3, None)
    tally.granted(7.0, object())  # type: ignore[arg-type]

    assert (tally.permit_wait.total_s, tally.task_wait.total_s) == (0.3, 7.0)
    assert sum(tally.permit_wait.counts) == sum(tally.task_wait.counts) == 1


def test_permits_that_ended_count_by_the_class_of_their_status() -> None:
    tally = Tally()

    for status in (None, 100, 200, 299, 304, 404, 503, 600, 999):
        tally.left(status, 2.0)

    assert tally.ended == {
        "none": 1,
        "1xx": 1,
        "2xx": 2,
        "3xx": 1,
        "4xx": 1,
        "5xx": 1,
        "other": 2,
    }
    assert (tally.hold.total_s, sum(tally.hold.counts)) == (18.0, 9)


def test_a_server_that_makes_up_statuses_makes_no_more_than_a_bounded_number_of_keys() -> None:
    tally = counted(*(BackedOff(ORIGIN, status, 1.0, "") for status in range(1_000)))
    for status in range(100, 1_000):
        tally.left(status, 0.0)

    assert len(tally.ended) == 7
    assert len(tally.backed_off) < 80
    assert tally.backed_off["429"] == tally.backed_off["503"] == 1
    assert tally.backed_off["4xx"] > 50
    assert tally.backed_off["none"] == 100


def test_events_count_by_reason() -> None:
    fetched = RobotsFetched(ORIGIN, "unreachable", "DNS_NXDOMAIN", None, 0, 0.4, 60.0)
    tally = counted(
        Refused(ORIGIN, "RULE", 2),
        Refused(ORIGIN, "UNREACHABLE", None),
        Refused(ORIGIN, "RULE", 3),
        fetched,
        fetched,
        Retried(ORIGIN, 1, 0.0),
        Dropped(ORIGIN, "max_tries=3", 3),
        OriginPostponed(ORIGIN, 5, 60.0, ""),
        StoreAway("redis://store.test", ""),
        PaymentRequired(ORIGIN, ORIGIN, "USD 1"),
        LicenseRequired(ORIGIN, ORIGIN, 401, "License"),
        LicenseRequired(ORIGIN, ORIGIN, 402, "License"),
        Skipped(ORIGIN, "not counted"),
    )

    assert tally.refused == {"RULE": 2, "UNREACHABLE": 1}
    assert tally.demands == {"payment": 1, "licence": 2}
    assert tally.robots_fetches == {("unreachable", "DNS_NXDOMAIN"): 2}
    assert (tally.robots_fetch.total_s, sum(tally.robots_fetch.counts)) == (0.8, 2)
    assert (tally.retried, tally.dropped.total(), tally.postponed, tally.outages) == (1, 1, 1, 1)


@pytest.mark.slow("a million origins")
def test_a_million_origins_make_as_many_keys_as_one() -> None:
    tally = Tally()

    for number in range(1_000_000):
        tally(Refused(f"https://host{number}.test/", "RULE", 2))
    for number in range(10_000):
        tally(BackedOff(f"https://host{number}.test", 429, 1.0, ""))
        tally(RobotsFetched(f"https://host{number}.test", "found", "OK", 200, 0, 0.1, 60.0))

    assert tally.refused == {"RULE": 1_000_000}
    assert tally.backed_off == {"429": 10_000}
    assert tally.robots_fetches == {("found", "OK"): 10_000}
