"""Files that are kept: compressed octets, the compact form, pickles, and how much memory rules take."""

import gc
import pickle
import tracemalloc
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidOption, PoliteError
from polite.robots.dialect import BY_NAME, GOOGLE, RFC9309, Dialect
from polite.robots.parse import Robots, parse
from polite.robots.result import KeptOctets
from polite.robots.serialization import CorruptRobots, pack, unpack


@given(st.binary(max_size=2_000) | st.binary(min_size=1, max_size=9).map(lambda part: part * 500))
def test_octets_come_back(octets: bytes):
    kept = KeptOctets(octets)
    assert (kept.octets, kept.length, hash(kept)) == (octets, len(octets), hash(octets))
    assert len(kept.packed) <= len(octets)
    assert kept == octets == KeptOctets(octets)


def traced(work):
    """The octets that what the work returns takes."""
    gc.collect()
    tracemalloc.start()
    made = work()
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del made
    return taken


def test_a_file_is_kept_compressed_once_it_is_asked_again_and_says_the_same():
    text = (
        b"# a comment\n" * 5_000
        + b"User-agent: *\nDisallow: /a\nSitemap: https://example.com/s\nUser-agent: b\nAllow:"
    )
    expected = parse(text)

    def asked(times: int) -> Robots:
        robots = parse(bytes(bytearray(text)))
        for _ in range(times):
            robots.rules_for("examplebot")
        return robots

    robots = asked(2)
    assert (robots.sitemaps, robots.groups) == (expected.sitemaps, expected.groups)
    assert robots.to_bytes() == expected.to_bytes()
    assert robots.explain("b", "/a") == expected.explain("b", "/a")
    assert traced(lambda: asked(1)) > len(text) > 5 * traced(lambda: asked(2))


FEW = 6_000
FILES = {
    "all alike": b"Disallow: /a\n" * FEW,
    "a head for each": b"".join(b"Disallow: /%d*x%d\n" % (n, n) for n in range(FEW)),
    "a crowd": b"".join(b"Disallow: /*a*%d\n" % n for n in range(FEW)),
    "heads within heads": b"".join(b"Disallow: /%s*%d\n" % (b"a" * (n // 24), n) for n in range(FEW)),
    "escapes": b"".join(b"Disallow: /%%C3%%BC%d*%%2A\n" % n for n in range(FEW)),
    "octets": b"".join(b"Disallow: /\xc3\xbc%d\n" % n for n in range(FEW)),
    "long with stars": b"".join(b"Disallow: /*%d%s\n" % (n, b"x*" * 500) for n in range(100)),
}


@pytest.mark.slow("measures memory of large files", rows=["a crowd", "heads within heads"])
@pytest.mark.parametrize("rules", FILES.values(), ids=FILES)
def test_the_estimate_is_no_less_than_what_was_measured_and_no_more_than_six_times_that(rules: bytes) -> None:
    questions = [f"/{n}x{n}xx" for n in range(2_000)] + [f"/{'a' * n}{n}" for n in range(250)]
    body = b"User-agent: *\n" + rules
    parse(body).rules_for("anybot").decide("/")  # what is made once
    made = []

    def asked() -> None:
        made.append(parse(body).rules_for("anybot"))
        for path in questions:
            made[0].allows(path)

    taken = traced(asked)

    assert taken <= made[0].memory <= 6 * taken


BODY = b"User-agent: *\nDisallow: /\xff\nNoindex: /x\n" * 50
OWN = replace(RFC9309, name="own", has_wildcards=False)
CHANGED = replace(GOOGLE, supplies_slash=True)


@pytest.mark.parametrize("dialect", [*BY_NAME.values(), OWN, CHANGED], ids=lambda dialect: dialect.name)
def test_the_compact_form_and_a_pickle_bring_back_body_and_dialect(dialect: Dialect):
    robots = parse(BODY, dialect)
    own = dialect in (OWN, CHANGED)

    copies = [
        pickle.loads(pickle.dumps(robots)),  # noqa: S301 - our own octets
        Robots.from_bytes(robots.to_bytes(), dialect if own else None),
    ]

    for copy in copies:
        assert (copy.groups, copy.extensions, copy.dialect) == (robots.groups, robots.extensions, dialect)
    if own:
        with pytest.raises(InvalidOption, match="pass that dialect"):
            Robots.from_bytes(robots.to_bytes())


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
    assert len(unpack(whole(b"rfc9309", zlib.compress(b"#" * 50_000_000)))[0]) == 512_001


@given(st.integers(0, 90), st.integers(1, 255), st.integers(0, 100))
def test_a_changed_octet_is_noticed(position: int, change: int, cut: int):
    octets = bytearray(pack(b"User-agent: *\nDisallow: /a\n", GOOGLE))
    octets[position % len(octets)] ^= change
    with pytest.raises(PoliteError):
        unpack(bytes(octets)[: -cut or None])
