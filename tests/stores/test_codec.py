"""Snapshots as rows and as octets: what comes back, and what is refused."""

import json
import pickle
import tracemalloc
import zlib
from dataclasses import MISSING, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polite
from polite.ports import SavedBackOff, Snapshot
from polite.recrawl import Validators
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.stores import codec
from polite.stores.codec import decode, encode

NAME = "https://example.com"
URL = f"{NAME}/robots.txt"
FILE = Found(bytes(range(256)) * 40, 200, URL, 1, capped=True, elapsed_s=0.5, max_age_s=60.0, downgraded=True)
GOOD = Snapshot(FILE, 1e9, 1.1e9, good=FILE, good_at=1e9)
GONE = Unavailable(Reason.CLIENT_ERROR, URL, 404, probes=1)
FAILED = Unreachable(Reason.TIMEOUT, URL, 503, "5 s, né", retry_after_s=7.0)
BOTH = Snapshot(FAILED, 1e9, 1.1e9, GONE, 9e8, 9.5e8, 3, 9.9e8)
MARK = b"polite-snapshot "


def as_row_and_back(snapshot: Snapshot) -> Snapshot:
    row = codec.row(NAME, snapshot)

    assert len(row) == len(codec.COLUMNS)
    assert codec.decoded(NAME, codec.encoded(row), codec.COLUMNS) == row
    return codec.snapshot(row)


def with_unusual_fields(kind):
    usual = {"file": b"x", "status": 203, "url": URL, "reason": Reason.TIMEOUT}
    others = {bool: True, int: 7, float: 2.5, str: "other", type(None): 3}
    return kind(
        **{
            each.name: usual[each.name] if each.default is MISSING else others[type(each.default)]
            for each in fields(kind)
        }
    )


@pytest.mark.parametrize(
    "access", [FILE, FILE.kept(), GONE, FAILED, *map(with_unusual_fields, (Found, Unavailable, Unreachable))]
)
@pytest.mark.parametrize("snapshot", [GOOD, BOTH])
def test_every_field_of_a_snapshot_comes_back(access, snapshot):
    snapshot = replace(snapshot, access=access)
    assert as_row_and_back(snapshot) == snapshot
    assert decode(encode(snapshot)) == decode(memoryview(encode(snapshot))) == snapshot
    assert len(encode(snapshot)) < 9_000


def test_rows_of_back_offs_and_validators_come_back() -> None:
    back_off, validators = SavedBackOff(1.0, 2.0, "status 429", b"learned"), Validators('"1"', None)

    row = codec.back_off_row(NAME, back_off)
    assert codec.back_off(row) == back_off
    assert codec.decoded(NAME, codec.encoded(row), codec.BACK_OFF_COLUMNS) == row
    # Of an earlier version, which knew of no memory.
    earlier = codec.decoded(NAME, codec.encoded(row[:-1]), codec.BACK_OFF_COLUMNS)
    assert codec.back_off(earlier) == replace(back_off, memory=b"")
    assert len(codec.back_off_row(NAME, replace(back_off, because="x" * 1_000))[3]) == 500  # type: ignore[arg-type]
    assert codec.validators((URL, validators.etag, validators.last_modified)) == validators
    assert codec.validators((URL, '"a\r\nX: y"', 5)) == Validators()
    with pytest.raises(codec.Unreadable):
        codec.back_off((NAME, 1.0, "2", "status 429", None))


@pytest.mark.parametrize("lines", [0, 5, 5_000])
def test_a_long_body_is_compressed_and_a_short_one_can_be_read_by_others(lines: int) -> None:
    found, at = Found(b"Disallow: /\n" * lines, 200, URL), codec.COLUMNS.index("body")
    row = codec.row(NAME, Snapshot(found, 1.0, 2.0))
    assert row == codec.row(NAME, Snapshot(found.kept(), 1.0, 2.0))
    assert len(row[at]) < 1_000
    assert (row[at] == found.body) is (lines < 5_000)
    assert codec.snapshot(row).access == found


def test_a_bomb_inflates_no_further_than_its_row_says() -> None:
    bomb = zlib.compress(bytes(50_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match="100 octets"):
        codec.inflated(bomb, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("outcome", value) for value in ("perhaps", [1])),
        *(("body", value) for value in (None, b"not packed")),
        *(("octets", value) for value in (3, -1, 1 << 40, "many")),
        *(("fetched_at", value) for value in ("yesterday", 10**400)),
        *(("more", value) for value in ("{", "[" * 5_000)),
        *(("good_outcome", value) for value in ("found", "perhaps")),
        *(("reason", "NO_SUCH_REASON"), ("failures", None)),
    ],
)
def test_a_row_that_makes_no_sense_is_refused(column, value):
    row = list(codec.row(NAME, GOOD))
    row[codec.COLUMNS.index(column)] = value
    with pytest.raises(codec.Unreadable, match=r"example\.com"):
        codec.snapshot(row)


def test_fields_that_a_newer_polite_adds_are_skipped() -> None:
    row = list(codec.row(NAME, BOTH))
    row[codec.COLUMNS.index("more")] = '{"colour": "green"}'
    assert codec.snapshot(row) == BOTH


def test_octets_of_an_earlier_release_are_read() -> None:
    octets = (
        b'polite-snapshot 1[488659706,1000000000.0,1100000000.0,null,0,1000000000.0,null,"found","OK",[],200,null,0,0.5,60.0,'
        b'null,0,13,13,null,"same"]\nUser-agent: *'
    )
    assert decode(octets).access == Found(
        b"User-agent: *", 200, "/robots.txt", 0, elapsed_s=0.5, max_age_s=60.0
    )


ROW = codec.encoded(codec.row("", GOOD))


def forged(column, value):
    row = list(codec.row("", GOOD))
    row[codec.COLUMNS.index(column)] = value
    return MARK + codec.encoded(tuple(row))


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"{}",
        ROW,
        pickle.dumps({}),
        encode(GOOD)[:-1],
        encode(GOOD) + b"x",
        encode(GOOD).replace(b"200", b"404"),
        MARK,
        MARK + b"1" + b"[" * 100_000,
        MARK + b"1[]\n",
        MARK + b"1{}",
        MARK + b"2" + ROW[1:],
        # Their checksums are right, and no encode made them.
        forged("fetched_at", float("nan")),
        forged("url", 5),
        forged("url", ["a"]),
        forged("status", "200"),
        forged("more", '{"downgraded": 7}'),
    ],
)
def test_octets_of_others_and_damaged_ones_are_refused(octets: bytes) -> None:
    with pytest.raises(polite.CorruptRobots, match="a snapshot"):
        decode(octets)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_no_octets_raise_another_error(noise: bytes, at: int) -> None:
    octets = encode(BOTH)
    for each in (noise, MARK + b"1" + noise, octets[:at] + noise + octets[at + len(noise) :]):
        try:
            found = decode(each)
        except polite.CorruptRobots:
            continue
        assert found == BOTH


def test_what_is_no_snapshot_or_no_octets_is_a_type_error() -> None:
    wrong = json
    for each in (wrong, replace(GOOD, access=wrong), replace(GOOD, fetched_at=True)):
        with pytest.raises(TypeError, match="snapshot must be a Snapshot"):
            encode(each)
    with pytest.raises(TypeError, match="octets must be bytes, got str"):
        decode(wrong.dumps({}))
