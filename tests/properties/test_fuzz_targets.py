"""A short `./dev fuzz`: each target with its seeds, with inputs that Hypothesis makes of its words, and with a wrong result."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import ftp
from tests.fuzz.targets import TARGETS
from tests.support import examples


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_the_seeds_and_each_word_alone_pass(target):
    for data in (
        b"",
        b"\0",
        *target.SEEDS,
        *target.WORDS,
        *(b"\x01\x01\x01" + word for word in target.WORDS),
    ):
        target.one_input(data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_any_input_passes(target):
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
