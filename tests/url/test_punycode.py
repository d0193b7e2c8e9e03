"""Punycode of one label, both ways: the samples of RFC 3492 (7.1), and what decoders must refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.url.errors import InvalidPart
from polite.url.idn import decode_label, encode_label

_SAMPLES = [
    ("ليهمابتكلموشعربي؟", "egbpdaj6bu4bxfgehfvwxn"),
    ("他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"),
    ("3年b組金八先生", "3b-ww4c5e180e575a65lsy2b"),
    ("maji", "maji-"),
    ("majiでkoiする5秒前", "majikoi5-783gue6qz075azm5e"),
    ("müller", "mller-kva"),
    ("-ü-", "---xka"),
    ("💩", "ls8h"),
]


@pytest.mark.parametrize(("label", "punycode"), _SAMPLES)
def test_samples_encode(label, punycode):
    assert encode_label(label) == punycode


@pytest.mark.parametrize(("label", "punycode"), _SAMPLES)
def test_samples_decode(label, punycode):
    assert decode_label(punycode) == label


@pytest.mark.parametrize("punycode", ["mller-kv", "en32g", "zz.", "99999999", "-a-é", "9" * 1_000])
def test_what_is_no_punycode_is_refused(punycode):
    with pytest.raises(InvalidPart, match="Punycode"):
        decode_label(punycode)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_decoding_undoes_encoding(label):
    assert decode_label(encode_label(label)) == label


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_the_deltas_are_those_of_the_standard_library(label):
    assert encode_label(label) == label.encode("punycode").decode()
