"""Octets that are kept compressed are the same octets."""

import gc
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.parse import parse
from polite.robots.result import Found, KeptOctets, length

LONG = b"User-agent: *\n" + b"Disallow: /private/\n" * 1_000


@given(st.binary(max_size=2_000) | st.binary(min_size=1, max_size=9).map(lambda part: part * 500))
def test_octets_come_back(octets: bytes):
    kept = KeptOctets(octets)

    assert (kept.octets, kept.length, hash(kept)) == (octets, len(octets), hash(octets))
    assert len(kept.packed) <= len(octets)
    assert kept == octets == KeptOctets(octets)


def test_only_what_gets_shorter_is_compressed():
    assert len(KeptOctets(LONG).packed) < len(LONG) // 50
    assert KeptOctets(LONG[:100]).packed == LONG[:100]
    assert KeptOctets(b"", b"longer").octets == b""


def test_octets_that_were_compressed_before_are_not_compressed_again():
    packed = zlib.compress(LONG, 9)

    kept = KeptOctets(LONG, packed)

    assert kept.packed is packed
    assert kept == KeptOctets(LONG)
    assert kept.octets == LONG


def test_no_more_is_inflated_than_the_octets_that_were_kept():
    kept = KeptOctets(LONG, zlib.compress(LONG * 1_000))

    assert kept.octets == LONG


@pytest.mark.parametrize("other", [LONG[:-1], KeptOctets(LONG[:-1]), KeptOctets(LONG[:-1] + b" "), "x", None])
def test_other_octets_differ(other: object):
    assert KeptOctets(LONG) != other


def test_a_result_is_the_same_when_it_is_kept():
    found = Found(LONG, 200, "https://example.com/robots.txt", capped=True)

    kept = found.kept()

    assert kept == found
    assert kept.kept() is kept
    assert (kept.body, kept.length, kept.capped) == (LONG, len(LONG), True)
    assert length(kept) < length(found) // 50


def test_a_file_is_kept_compressed_once_it_is_asked_again_and_says_the_same():
    text = (
        b"# a comment\n" * 5_000
        + b"User-agent: *\nDisallow: /a\nSitemap: https://example.com/s\nUser-agent: b\nAllow:"
    )
    expected = parse(text)

    def memory(asked: int) -> int:
        gc.collect()
        tracemalloc.start()
        robots = parse(bytes(bytearray(text)))
        for _ in range(asked):
            robots.rules_for("examplebot")
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size

    robots = parse(text)
    first = robots.rules_for("examplebot")

    assert robots.rules_for("examplebot") is first
    assert (robots.sitemaps, robots.groups) == (expected.sitemaps, expected.groups)
    assert robots.to_bytes() == expected.to_bytes()
    assert robots.explain("b", "/a") == expected.explain("b", "/a")
    assert memory(1) > len(text) > 5 * memory(2)


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
    body = b"User-agent: *\n" + rules
    questions = [f"/{n}x{n}xx" for n in range(2_000)] + [f"/{'a' * n}{n}" for n in range(250)]
    parse(body).rules_for("anybot").decide("/")  # what is made once
    gc.collect()

    tracemalloc.start()
    asked = parse(body).rules_for("anybot")
    for path in questions:
        asked.allows(path)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken <= asked.memory <= 6 * taken
