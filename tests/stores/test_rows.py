"""A snapshot is read from its row as it was written; a row that was changed is discarded."""

import tracemalloc
import zlib
from dataclasses import MISSING, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.stores import rows

NAME = "https://site.test"
URL = f"{NAME}/robots.txt"
FOUND = Found(b"User-agent: *\n", 200, URL)


def there_and_back(snapshot: Snapshot) -> Snapshot:
    row = rows.row(NAME, snapshot)

    assert len(row) == len(rows.COLUMNS)
    return rows.snapshot(row)


def unusual(kind):
    """An answer with every field that has a default set to something else."""
    found = kind(**{f.name: usual_for(f) for f in fields(kind) if f.default is MISSING})
    others = {bool: True, int: 7, float: 2.5, str: "other", type(None): 3}
    return replace(
        found, **{f.name: others[type(f.default)] for f in fields(kind) if f.default is not MISSING}
    )


def usual_for(field):
    return {"file": b"x", "status": 203, "url": URL, "reason": Reason.TIMEOUT}[field.name]


@pytest.mark.parametrize("kind", [Found, Unavailable, Unreachable])
def test_every_field_of_an_answer_comes_back(kind):
    access = unusual(kind)
    good = None if kind is Unreachable else access

    assert there_and_back(Snapshot(access, 1.0, 2.0, good=good, good_at=1.0)).access == access


def test_every_field_of_a_snapshot_comes_back():
    failed = Unreachable(Reason.TIMEOUT, URL, detail="no answer", retry_after_s=9.0)
    snapshot = Snapshot(
        failed, 5.0, 6.0, good=FOUND, good_at=1.0, unreachable_since=4.0, failures=3, good_until=8.0
    )

    assert all(getattr(snapshot, f.name) not in (None, 0) for f in fields(Snapshot))
    assert there_and_back(snapshot) == snapshot


def test_a_good_copy_that_is_the_answer_itself_is_written_once():
    row = rows.row(NAME, renewed(None, FOUND, RobotsPolicy(), 1.0))
    snapshot = rows.snapshot(row)

    assert row.count(FOUND.body) == 1
    assert snapshot.good is snapshot.access


texts = st.text(st.characters(codec=None), max_size=30)
times = st.floats(allow_nan=False)


@given(
    st.builds(Found, st.binary(max_size=9_000), st.integers(0, 999), texts, elapsed_s=times),
    st.builds(Unavailable, st.sampled_from(Reason), texts, st.none() | st.integers(0, 999)),
    times,
    st.none() | times,
)
def test_any_snapshot_comes_back(found, unavailable, fetched_at, good_at):
    snapshot = Snapshot(found, fetched_at, 2.0, good=unavailable, good_at=good_at)

    back = there_and_back(snapshot)

    assert back.access == replace(found, url=back.access.url)
    assert back.good == replace(unavailable, url=back.good.url)
    assert (back.fetched_at, back.good_at) == (fetched_at, good_at)


def test_a_text_that_utf_8_cannot_hold_is_kept_readable():
    snapshot = Snapshot(Unreachable(Reason.INTERNAL_ERROR, URL, detail="broken \udcff name"), 1.0, 2.0)

    assert there_and_back(snapshot).access.detail == r"broken \udcff name"


def test_a_long_body_is_packed_and_a_short_one_can_be_read_by_others():
    short, long = (
        rows.row(NAME, Snapshot(Found(b"Disallow: /\n" * lines, 200, URL), 1.0, 2.0)) for lines in (5, 5_000)
    )
    body = rows.COLUMNS.index("body")

    assert short[body] == b"Disallow: /\n" * 5
    assert len(long[body]) < 1_000
    back = rows.snapshot(long).access
    assert back.body == b"Disallow: /\n" * 5_000
    assert back.file.packed is long[body]


@pytest.mark.parametrize("length", [0, 100, 5_000, 60_000])
def test_a_body_is_written_alike_whether_it_was_kept_compressed_or_not(length: int):
    found = Found(b"Disallow: /\n" * (length // 12), 200, URL)

    assert rows.row(NAME, Snapshot(found.kept(), 1.0, 2.0)) == rows.row(NAME, Snapshot(found, 1.0, 2.0))


def test_a_body_that_packing_makes_longer_stays_as_it_is():
    body = zlib.compress(bytes(range(256)) * 400, 9) + bytes(i * i * 31 % 251 for i in range(9_000))
    body = bytes(a ^ b for a, b in zip(body, zlib.compress(body) * 3, strict=False))

    assert there_and_back(Snapshot(Found(body, 200, URL), 1.0, 2.0)).access.body == body


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("reason", "NO_SUCH_REASON"),
        ("outcome", "perhaps"),
        ("body", None),
        ("body", b"not packed"),
        ("octets", 3),
        ("octets", -1),
        ("octets", "many"),
        ("fetched_at", "yesterday"),
        ("failures", None),
        ("more", "{"),
        ("good_outcome", "found"),
        ("good_outcome", "perhaps"),
    ],
)
def test_a_row_that_was_changed_is_not_read(column, value):
    row = list(rows.row(NAME, renewed(None, Found(b"Disallow: /\n" * 5_000, 200, URL), RobotsPolicy(), 1.0)))
    row[rows.COLUMNS.index(column)] = value

    with pytest.raises(rows.Unreadable, match="site"):
        rows.snapshot(row)
    row[-1] = 0
    with pytest.raises(rows.Unreadable, match="site"):
        rows.snapshot(row, has_checksums=False)


def test_a_failure_is_no_good_copy():
    row = list(rows.row(NAME, Snapshot(Unreachable(Reason.TIMEOUT, URL), 1.0, 2.0)))
    row[rows.COLUMNS.index("good_outcome")] = "same"

    with pytest.raises(rows.Unreadable):
        rows.snapshot(row)


def test_a_bomb_inflates_no_further_than_its_row_says():
    bomb = zlib.compress(bytes(50_000_000))
    tracemalloc.start()

    with pytest.raises(ValueError, match="100 octets"):
        rows.inflated(bomb, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1_000_000


def test_what_a_newer_polite_knows_besides_is_passed_over():
    row = list(rows.row(NAME, Snapshot(FOUND, 1.0, 2.0)))
    row[rows.COLUMNS.index("more")] = '{"colour": "green"}'

    assert rows.snapshot(rows.with_checksum(tuple(row[:-1]))).access == FOUND
