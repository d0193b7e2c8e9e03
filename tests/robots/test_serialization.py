"""The compact form and pickles: back comes what went in, and nothing else ever does."""

import pickle
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidOption, PoliteError
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.parse import Robots, parse
from polite.robots.serialization import CorruptRobots, pack, unpack

NAMED = [CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE]
BODY = b"User-agent: *\nDisallow: /\xff\nNoindex: /x\n" * 50
OWN = replace(RFC9309, name="own", has_wildcards=False)
CHANGED = replace(GOOGLE, supplies_slash=True)


@pytest.mark.parametrize("dialect", NAMED, ids=lambda dialect: dialect.name)
def test_the_compact_form_brings_back_body_and_dialect(dialect: Dialect):
    robots = Robots.from_bytes(parse(BODY, dialect).to_bytes())

    assert robots.groups == parse(BODY, dialect).groups
    assert robots.extensions == parse(BODY, dialect).extensions
    assert robots.dialect is dialect


@pytest.mark.parametrize("dialect", [OWN, CHANGED], ids=["own", "changed"])
def test_a_dialect_of_your_own_is_given_again(dialect: Dialect):
    packed = parse(BODY, dialect).to_bytes()

    with pytest.raises(InvalidOption, match="pass that dialect"):
        Robots.from_bytes(packed)
    assert Robots.from_bytes(packed, dialect).dialect is dialect


@pytest.mark.parametrize("dialect", [RFC9309, OWN], ids=lambda dialect: dialect.name)
def test_it_pickles_with_any_dialect(dialect: Dialect):
    robots = pickle.loads(pickle.dumps(parse(BODY, dialect)))  # noqa: S301 - our own octets

    assert robots.groups == parse(BODY, dialect).groups
    assert robots.dialect == dialect


def test_a_file_that_the_limit_cut_short_stays_as_it_was():
    small = replace(RFC9309, max_bytes=30)
    robots = parse("User-agent: *\nDisallow: /a\nAllow: /abc", small)

    assert pickle.loads(pickle.dumps(robots)).groups == robots.groups  # noqa: S301 - our own octets
    assert Robots.from_bytes(robots.to_bytes(), small).groups == robots.groups


def whole(name: bytes, rest: bytes) -> bytes:
    """Octets whose checksum is right."""
    after = bytes([len(name)]) + name + rest
    return b"PR\x01" + zlib.crc32(after).to_bytes(4, "big") + after


@pytest.mark.parametrize(
    ("octets", "complaint"),
    [
        (b"", "starts with"),
        (b"PR\x02" + pack(BODY, RFC9309)[3:], "starts with"),
        (b"PR\x01", "cut short"),
        (pack(BODY, RFC9309)[:-1], "cut short"),
        (whole(b"klingon", zlib.compress(BODY)), "no known dialect"),
        (whole(b"rfc9309", b"no zlib"), "does not inflate"),
        (whole(b"rfc9309", zlib.compress(BODY)[:-5]), "is incomplete"),
        (whole(b"rfc9309", zlib.compress(BODY) + b"x"), "after its end"),
    ],
)
def test_what_is_no_compact_form_is_refused(octets: bytes, complaint: str):
    with pytest.raises(CorruptRobots, match=complaint):
        unpack(octets)


def test_a_bomb_inflates_to_what_counts_and_no_further():
    bomb = whole(b"rfc9309", zlib.compress(b"#" * 50_000_000))

    assert len(unpack(bomb)[0]) == 512_001


@given(st.integers(0, 90), st.integers(1, 255), st.integers(0, 100))
def test_a_changed_octet_is_noticed(position: int, change: int, cut: int):
    octets = bytearray(pack(b"User-agent: *\nDisallow: /a\n", GOOGLE))
    octets[position % len(octets)] ^= change

    with pytest.raises(PoliteError):
        unpack(bytes(octets)[: -cut or None])
