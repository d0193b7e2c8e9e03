"""Hosts and internationalised names: what is refused and where, and Punycode. Their one spelling: test_against_ada.py."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.url.errors import InvalidPart
from polite.url.host import parse_host
from polite.url.idn import MAX_IDN, decode_label, domain_to_ascii, encode_label


@pytest.mark.parametrize("character", "\x00\x01\t\n\r\x1f #/:<>?@[\\]^|%\x7f")
def test_a_forbidden_character_is_refused_where_it_stands(character):
    with pytest.raises(InvalidPart, match=rf"U\+{ord(character):04X}") as caught:
        parse_host(f"ab{character}c", special=True)
    assert caught.value.position == 2


@pytest.mark.parametrize(
    ("text", "host"),
    [("ExAmple", "ExAmple"), ("é", "%C3%A9"), ("a%20b", "a%20b"), ("1.256", "1.256"), ("[::0]", "[::]")],
)
def test_the_host_of_an_unknown_scheme_is_opaque(text, host):
    assert parse_host(text, special=False) == host


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        # An opaque host has forbidden characters too.
        *((partial(parse_host, special=False), f"a{character}b", "not allowed") for character in " <\\^|]"),
        # A name beyond the limit costs nothing.
        (domain_to_ascii, "é" * (MAX_IDN + 1), f"MAX_IDN = {MAX_IDN}"),
        *(
            (decode_label, odd, "Punycode")
            for odd in ("mller-kv", "en32g", "zz.", "99999999", "-a-é", "9" * 1_000)
        ),
    ],
    ids=range(13),
)
def test_what_is_no_host_is_refused(read, text, why):
    with pytest.raises(InvalidPart, match=why):
        read(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_decoding_undoes_encoding_which_is_that_of_the_standard_library(label):
    assert encode_label(label) == label.encode("punycode").decode()
    assert decode_label(encode_label(label)) == label
