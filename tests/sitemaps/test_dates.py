"""lastmod in each form that sites write, and how much time a date covers."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from polite.sitemaps.entry import NO_DATE, changed_since, parse_date

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "date", "span"),
    [
        ("2024", datetime(2024, 1, 1, tzinfo=UTC), 366 * DAY),
        ("2026-02", datetime(2026, 2, 1, tzinfo=UTC), 28 * DAY),
        ("9999-12", datetime(9999, 12, 1, tzinfo=UTC), 31 * DAY),
        ("2026-5-1", datetime(2026, 5, 1, tzinfo=UTC), DAY),
        ("2026-05-01T10:20Z", datetime(2026, 5, 1, 10, 20, tzinfo=UTC), timedelta(minutes=1)),
    ],
)
def test_a_date_covers_what_it_leaves_out(text, date, span):
    assert parse_date(text) == (date, span)


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-01T10:20:30z",
        "2026-05-01T12:20:30+0200",
        "2026-05-01T04:50:30-05:30",
        "2026-05-01 10:20:30",
        "2026-05-01T10:20:30.000Z",
        "Fri, 01 May 2026 10:20:30 GMT",
        "01 May 26 10:20:30 GMT",
    ],
)
def test_one_moment_in_many_forms(text):
    assert parse_date(text) == (datetime(2026, 5, 1, 10, 20, 30, tzinfo=UTC), timedelta(0))


def test_a_time_keeps_its_zone_and_its_microseconds():
    date, _ = parse_date("2026-05-01T10:20:30.1234567+02:00")

    assert date == datetime(2026, 5, 1, 10, 20, 30, 123_456, tzinfo=timezone(timedelta(hours=2)))
    assert date.utcoffset() == timedelta(hours=2)


@pytest.mark.parametrize(
    "text",
    [
        "", "yesterday", "0000-01-01", "2026-13-01", "2026-02-30", "2026-05-01T25:00Z", "2026-05-01T10:20+99:00", "20260501",
        "2026-05-01T", "2026-05-", "1" * 100, "Fri, 99 May 2026 10:20:30 GMT", ",", "(", "٢٠٢٦-٠٥-٠١", "2026-05-01\0",
    ],
)  # fmt: skip
def test_what_is_no_date(text):
    assert parse_date(text) == NO_DATE


def test_a_page_changed_on_a_day_may_have_changed_after_its_noon():
    date, span = parse_date("2026-05-01")

    assert changed_since(date, span, datetime(2026, 5, 1, 12, tzinfo=UTC))
    assert not changed_since(date, span, datetime(2026, 5, 2, tzinfo=UTC))
    assert changed_since(None, timedelta(0), datetime(2026, 5, 2, tzinfo=UTC))
