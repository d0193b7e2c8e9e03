"""The fuzz target on its seeds and on what Hypothesis finds: the short run of what `./dev fuzz` does for long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.fuzz.deadline
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309
from polite.robots.parse import Robots
from polite.robots.serialization import pack
from tests.fuzz.robots import DIALECTS, SEEDS, WORDS, one_input
from tests.support import examples

pieces = st.one_of(
    st.sampled_from(WORDS), st.sampled_from([b" /a", b"a-b", b"/", b"\n", b":", b"5"]), st.binary(max_size=4)
)


def test_all_dialects_are_fuzzed():
    assert set(DIALECTS) == {CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dialect", range(len(DIALECTS)))
def test_the_seeds_pass(seed: bytes, dialect: int):
    one_input(bytes([dialect]) + seed[1:])


def test_what_is_too_short_is_passed_over():
    one_input(b"")
    one_input(b"\0")


@examples(400, fast=40)
@given(st.integers(0, 4), st.integers(0, 12), st.lists(pieces, max_size=30).map(b"".join))
def test_anything_passes(dialect: int, length: int, data: bytes):
    one_input(bytes([dialect, length]) + data)


@pytest.mark.parametrize("method", ["to_text", "to_bytes", "signals"])
def test_an_answer_that_contradicts_another_is_noticed(method: str, monkeypatch: pytest.MonkeyPatch):
    wrong = {
        "to_text": lambda robots: "" if robots.groups else "User-agent: *\nDisallow:\n",
        "to_bytes": lambda _: pack(b"User-agent: wrong\n", RFC9309),
        "signals": lambda robots, *_: object(),
    }
    monkeypatch.setattr(Robots, method, wrong[method])

    with pytest.raises(AssertionError, match="differ"):
        one_input(b"\0\x01bUser-agent: *\nDisallow: /b\n")


def test_a_run_that_takes_too_long_is_noticed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tests.fuzz.deadline, "LIMIT_S", -1.0)

    with pytest.raises(AssertionError, match="octets took"):
        one_input(SEEDS[0])
