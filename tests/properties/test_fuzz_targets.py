"""A short `./dev fuzz`: each target with its seeds, with inputs that Hypothesis makes of its words, and with a wrong result."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.fuzz.deadline
from polite.pacing.outcome import Pause
from polite.robots.exchange import BodyEnd, Reply
from polite.robots.reason import Reason
from polite.robots.result import Unreachable
from polite.terms.indexing import Indexing
from polite.transports.inflate import Inflater
from tests.fuzz import freshness, ftp, indexing, inflate, location, preferences, retry_after
from tests.fuzz.targets import TARGETS
from tests.support import examples


def test_each_target_has_its_name():
    names = {
        "robots",
        "retry-after",
        "freshness",
        "location",
        "inflate",
        "ftp",
        "indexing",
        "preferences",
        "usage",
    }

    assert set(TARGETS) == names


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


def test_a_delay_beyond_its_limits_is_found(monkeypatch: pytest.MonkeyPatch):
    pause = Pause(retry_after.MOST_S + 1.0, "too long", strike=True)
    monkeypatch.setattr(retry_after.THROTTLE, "rest", lambda *_, **__: pause)

    with pytest.raises(AssertionError, match="exceeds its limits"):
        retry_after.one_input(retry_after.SEEDS[0])


def test_a_detail_that_is_not_printable_is_found(monkeypatch: pytest.MonkeyPatch):
    wrong = Unreachable(Reason.REDIRECT_INVALID, "https://a.test/robots.txt", 301, "a\nline")
    monkeypatch.setattr(location.Exchange, "next", lambda *_: wrong)

    with pytest.raises(AssertionError, match="not printable"):
        location.one_input(location.SEEDS[0])


def test_endless_redirects_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(location.Exchange, "next", lambda self, *_: self)

    with pytest.raises(AssertionError, match="endless redirects"):
        location.one_input(location.SEEDS[0])


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    [
        ("end", lambda self, *, cut_short: BodyEnd.CAPPED, "capped below"),
        ("end", lambda self, *, cut_short: BodyEnd.COMPLETE, "a body cut short"),
        ("_keep", lambda self, data: self._body.extend(data), "more than the limit"),
    ],
)
def test_a_wrong_inflater_is_found(
    method: str, wrong: Callable[..., Any], message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Inflater, method, wrong)

    with pytest.raises(AssertionError, match=message):
        inflate.one_input(inflate.SEEDS[2] if method == "_keep" else b"\x03\x40\x08" + inflate.SEEDS[0][3:])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_path", lambda target: b"a\r\nDELE b"),
        ("_confirmed", None),
        ("_read", None),
    ],
)
def test_a_wrong_ftp_client_is_found(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch):
    async def complete(_: object) -> BodyEnd:
        return BodyEnd.COMPLETE

    async def too_much(_: object, limit: int) -> tuple[bytes, BodyEnd]:
        return b"x" * (limit + 1), BodyEnd.CAPPED

    monkeypatch.setattr(ftp.ftp, name, wrong or {"_confirmed": complete, "_read": too_much}[name])

    with pytest.raises(AssertionError):
        ftp.one_input(ftp.SEEDS[0].replace(b"226 done", b"426 broken"))


def test_an_input_that_takes_too_long_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tests.fuzz.deadline, "LIMIT_S", -1.0)

    for target in TARGETS.values():
        with pytest.raises(AssertionError, match="octets took"):
            target.one_input(target.SEEDS[0])


def test_the_ftp_target_sends_the_replies_of_its_input():
    results: list[object] = []
    checked = ftp._check

    def check(result: Reply, *more: Any) -> None:
        results.append(result)
        checked(result, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ftp, "_check", check)
        for seed in ftp.SEEDS:
            ftp.one_input(seed)

    assert [getattr(result, "status", None) for result in results] == [200, 404, 530, None]
