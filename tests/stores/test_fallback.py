"""The memory that takes over from a failing file is bounded, and the file is tried again now and then."""

from polite.errors import StoreFailed
from polite.ports import SavedBackOff
from polite.robots.result import Found
from polite.robots.snapshot import Snapshot
from polite.stores.fallback import CircuitBreaker, PendingWrites


def found(octets):
    return Snapshot(Found(bytes(octets), 200, ""), 1.0, 2.0)


def test_an_outage_is_told_once_and_the_file_is_left_alone_for_half_a_minute(caplog):
    now = 100.0
    breaker = CircuitBreaker("writing it", lambda: now)

    breaker.record_failure(StoreFailed("broken"))
    waited = breaker.is_open
    now += 30.0
    tried = not breaker.is_open
    breaker.record_failure(StoreFailed("broken"))
    breaker.record_success()
    breaker.record_success()

    assert waited
    assert tried
    assert [record.getMessage() for record in caplog.records] == [
        "broken; until writing it works again, memory takes its place",
        "writing it works again",
    ]


def test_what_was_kept_longest_ago_goes_first():
    unwritten = PendingWrites(2, 1_000_000)

    for name in ("a", "b", "a", "c"):
        unwritten.keep({name: found(1)}, {})

    assert list(unwritten.snapshots) == ["a", "c"]


def test_large_bodies_are_bounded_by_their_octets():
    unwritten = PendingWrites(1_000, 25_000)

    for name in "abcdef":
        unwritten.keep({name: found(10_000)}, {})
    unwritten.keep({"f": found(1)}, {})

    assert list(unwritten.snapshots) == ["e", "f"]


def test_after_all_was_written_there_is_capacity_again():
    unwritten = PendingWrites(1_000, 25_000)

    unwritten.keep({"a": found(20_000)}, {"a": SavedBackOff(0.0, 1.0, "")})
    unwritten.clear()
    unwritten.keep({"b": found(20_000)}, {})

    assert (list(unwritten.snapshots), unwritten.back_offs) == (["b"], {})


def test_of_too_many_back_offs_the_one_that_ends_first_goes():
    unwritten = PendingWrites(2, 1_000_000)

    for name, until in (("a", 50.0), ("b", 10.0), ("c", 30.0), ("a", 5.0)):
        unwritten.keep({}, {name: SavedBackOff(0.0, until, "")})

    assert {name: hold.until for name, hold in unwritten.back_offs.items()} == {"a": 50.0, "c": 30.0}
