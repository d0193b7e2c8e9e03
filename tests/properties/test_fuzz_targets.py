"""A short `./dev fuzz`: each target with its seeds, with inputs that Hypothesis makes of its words, and with a wrong result."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.fuzz.deadline
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309
from polite.robots.parse import Robots
from polite.robots.serialization import pack
from polite.terms.indexing import Indexing
from tests.fuzz import freshness, ftp, indexing, preferences, retry_after
from tests.fuzz.robots import DIALECTS, one_input
from tests.fuzz.targets import TARGETS
from tests.support import examples


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_seeds_and_each_word_alone_pass(target: ModuleType):
    for data in (
        b"",
        b"\0",
        *target.SEEDS,
        *target.WORDS,
        *(b"\x01\x01\x01" + word for word in target.WORDS),
    ):
        target.one_input(data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_any_input_passes(target: ModuleType):
    pieces = st.one_of(st.sampled_from((*target.WORDS, *target.SEEDS)), st.binary(max_size=4))

    @examples(150, fast=30)
    @given(st.binary(min_size=3, max_size=3), st.lists(pieces, max_size=12).map(b"".join))
    def passes(head: bytes, data: bytes) -> None:
        target.one_input(head + data)

    passes()


@settings(max_examples=100)
@given(st.binary(max_size=2), st.lists(st.sampled_from(ftp.WORDS), max_size=12).map(b"".join))
def test_any_ftp_dialogue_with_a_valid_beginning_passes(sent: bytes, replies: bytes):
    ftp.one_input(b"\x02\x01\x01/a" + sent.ljust(4, b"x") + ftp._HELLO + replies)


@pytest.mark.parametrize(
    ("target", "name", "wrong", "data"),
    [
        (retry_after, "retry_after_s", lambda *_: -1.0, retry_after.SEEDS[0]),
        (retry_after, "retry_after_s", lambda value, now: now, retry_after.SEEDS[1]),
        (freshness, "max_age_s", lambda control, age=None: 60.0 if age is None else 61.0, freshness.SEEDS[0]),
        (freshness, "max_age_s", lambda control, age=None: 60.0, freshness.SEEDS[0]),
        (indexing, "indexing", lambda *_, agent: Indexing(max_snippet=-1), indexing.SEEDS[0]),
        (preferences, "read_signal", lambda text: {"a": len(text) < 60}, preferences.SEEDS[1]),
        (preferences, "read_usage", lambda text: {"a": None}, preferences.SEEDS[0]),
    ],
)
def test_a_wrong_result_is_found(
    target: ModuleType, name: str, wrong: Callable[..., Any], data: bytes, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(target, name, wrong)

    with pytest.raises(AssertionError):
        target.one_input(data)


def test_an_input_that_takes_too_long_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tests.fuzz.deadline, "LIMIT_S", -1.0)

    for target in TARGETS.values():
        with pytest.raises(AssertionError, match="octets took"):
            target.one_input(target.SEEDS[0])


def test_all_dialects_are_fuzzed():
    assert set(DIALECTS) == {CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309}


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
