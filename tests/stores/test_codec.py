"""Snapshots as octets, for stores that users write: what comes back, and what is refused."""

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polite
from polite.ports import Snapshot, merged
from polite.robots.result import Found, Unavailable, Unreachable
from polite.stores import rows
from polite.stores.codec import decode, encode

URL = "https://example.com/robots.txt"
FILE = Found(bytes(range(256)) * 40, 200, URL, 1, capped=True, elapsed_s=0.5, max_age_s=60.0, downgraded=True)
GOOD = Snapshot(FILE, 1e9, 1.1e9, good=FILE, good_at=1e9)
GONE = Unavailable(polite.Reason.CLIENT_ERROR, URL, 404, probes=1)
FAILED = Unreachable(polite.Reason.TIMEOUT, URL, 503, "5 s, né", retry_after_s=7.0)
BOTH = Snapshot(FAILED, 1e9, 1.1e9, GONE, 9e8, 9.5e8, 3, 9.9e8)
ROW = rows.encoded(rows.row("", GOOD))


@pytest.mark.parametrize("snapshot", [GOOD, BOTH, replace(GOOD, access=FILE.kept()), merged(BOTH, GOOD)])
def test_a_snapshot_comes_back_whole(snapshot: Snapshot) -> None:
    octets = encode(snapshot)

    assert decode(octets) == decode(memoryview(octets)) == snapshot
    assert len(octets) < 6_000


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
        b"polite-snapshot ",
        b"polite-snapshot 1" + b"[" * 100_000,
        b"polite-snapshot 1[]\n",
        b"polite-snapshot 1{}",
        b"polite-snapshot 2" + ROW[1:],
    ],
)
def test_octets_of_others_and_damaged_ones_are_refused(octets: bytes) -> None:
    with pytest.raises(polite.CorruptRobots, match="a snapshot"):
        decode(octets)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("url", 5),
        ("url", ["a"]),
        ("status", "200"),
        ("fetched_at", float("nan")),
        ("octets", 1 << 40),
        ("octets", -1),
        ("reason", "NONSENSE"),
        ("outcome", "nonsense"),
        ("outcome", [1]),
        ("more", "[" * 5_000),
        ("more", '{"downgraded": 7}'),
        ("fetched_at", 10**400),
    ],
)
def test_nonsense_with_a_right_checksum_is_refused(column: str, value: Any) -> None:
    values = list(rows.row("", GOOD)[:-1])
    values[rows.COLUMNS.index(column)] = value
    forged = rows.encoded(rows.with_checksum(tuple(values)))

    with pytest.raises(polite.CorruptRobots, match="a snapshot"):
        decode(b"polite-snapshot " + forged)


@given(st.binary(max_size=60), st.integers(0, 400))
def test_no_octets_raise_another_error(noise: bytes, at: int) -> None:
    octets = encode(BOTH)
    for each in (noise, b"polite-snapshot 1" + noise, octets[:at] + noise + octets[at + len(noise) :]):
        try:
            found = decode(each)
        except polite.CorruptRobots:
            continue
        assert found == BOTH


def test_what_is_no_snapshot_or_no_octets_is_a_type_error() -> None:
    wrong: Any = json
    for each in (wrong, replace(GOOD, access=wrong), replace(GOOD, fetched_at=True)):
        with pytest.raises(TypeError, match="snapshot must be a Snapshot"):
            encode(each)
    with pytest.raises(TypeError, match="octets must be bytes, got str"):
        decode(wrong.dumps({}))
