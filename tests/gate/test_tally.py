"""Measures count what happens at a gate, under a bounded number of keys."""

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
from polite.gate.tally import BOUNDS_S, Histogram, Measures

ORIGIN = "https://site.test"


def counted(*events: object) -> Measures:
    measures = Measures()
    for event in events:
        measures(event)  # type: ignore[arg-type]
    return measures


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


def test_permits_that_ended_count_by_the_class_of_their_status() -> None:
    measures = Measures()

    for status in (None, 100, 200, 299, 304, 404, 503, 600, 999):
        measures.left(status, 2.0)

    assert measures.ended == {
        "none": 1,
        "1xx": 1,
        "2xx": 2,
        "3xx": 1,
        "4xx": 1,
        "5xx": 1,
        "other": 2,
    }
    assert (measures.hold.total_s, sum(measures.hold.counts)) == (18.0, 9)


def test_a_server_that_makes_up_statuses_makes_no_more_than_a_bounded_number_of_keys() -> None:
    measures = counted(*(BackedOff(ORIGIN, status, 1.0, "") for status in range(1_000)))
    for status in range(100, 1_000):
        measures.left(status, 0.0)

    assert len(measures.ended) == 7
    assert len(measures.backed_off) < 80
    assert measures.backed_off["429"] == measures.backed_off["503"] == 1
    assert measures.backed_off["4xx"] > 50
    assert measures.backed_off["none"] == 100


def test_events_count_by_reason() -> None:
    fetched = RobotsFetched(ORIGIN, "unreachable", "DNS_NXDOMAIN", None, 0, 0.4, 60.0)
    measures = counted(
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

    assert measures.refused == {"RULE": 2, "UNREACHABLE": 1}
    assert measures.demands == {"payment": 1, "licence": 2}
    assert measures.robots_fetches == {("unreachable", "DNS_NXDOMAIN"): 2}
    assert (measures.robots_fetch.total_s, sum(measures.robots_fetch.counts)) == (0.8, 2)
    assert (measures.retried, measures.dropped, measures.postponed, measures.outages) == (1, 1, 1, 1)
