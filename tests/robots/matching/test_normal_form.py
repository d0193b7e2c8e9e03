"""Spellings of octets: what each option changes, and nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.robots.pattern import (
    RESERVED,
    escape_normaliser,
    plain_specials,
    url_normaliser,
)

TEXT = "/%61%2a%24%27%2f%e9'\xe9 |%zz%"


@pytest.mark.parametrize(
    ("unreserved", "specials", "excluded", "expected"),
    [
        (False, False, False, "/%61%2A%24%27%2F%E9'%E9 |%zz%"),
        (True, False, False, "/a%2A%24%27%2F%E9'%E9 |%zz%"),
        (False, True, False, "/%61*$%27%2F%E9'%E9 |%zz%"),
        (False, False, True, "/%61%2A%24'%2F%E9'%E9 |%zz%"),
        (True, True, True, "/a*$'%2F%E9'%E9 |%zz%"),
    ],
)
def test_each_option_changes_its_own_characters(
    unreserved: bool, specials: bool, excluded: bool, expected: str
):
    assert escape_normaliser(unreserved=unreserved, specials=specials, excluded=excluded)(TEXT) == expected


def test_escapes_may_be_left_as_they_are():
    assert url_normaliser(excluded=False)(TEXT) == "/%61%2a%24%27%2f%e9'%E9 |%zz%"
    assert url_normaliser(excluded=True)(TEXT + "%7c") == "/%61%2a%24'%2f%e9'%E9 |%zz%|"
    assert url_normaliser(excluded=False, reserved="/")(TEXT + "%7c") == "/%61%2a%24%27/%e9'%E9 |%zz%%7c"


def test_every_octet_has_one_spelling_however_it_is_written():
    normal = escape_normaliser(unreserved=True, specials=True, excluded=True)
    # Neither a rule nor a path holds the last two as they are.
    reserved = set(":/?[]@!&()+,;=%#\n")

    differing = {chr(octet) for octet in range(256) if normal(chr(octet)) != normal(f"%{octet:02x}")}

    assert differing == reserved


def test_reserved_characters_have_one_spelling_if_they_equal_their_escapes():
    normal = escape_normaliser(unreserved=True, specials=True, excluded=True, reserved=RESERVED)

    differing = {chr(octet) for octet in range(256) if normal(chr(octet)) != normal(f"%{octet:02x}")}

    assert differing == set("%#\n")


def test_no_escape_is_decoded_twice():
    normal = escape_normaliser(unreserved=True, specials=True, excluded=True, reserved=RESERVED)

    assert normal("/%253A%25%33A%3%41") == "/%253A%253A%3A"
    assert normal(normal("/%253A%3A")) == normal("/%253A%3A")


def test_specials_are_made_plain():
    assert plain_specials("/%2A%24%2F") == "/*$%2F"
    assert plain_specials("/a") == "/a"


ESCAPES = st.text(st.sampled_from("%%%4142aAfFeEzZ/-~*\n\xe9\xff"), max_size=40)


@given(ESCAPES)
def test_each_escape_and_each_octet_is_rewritten_once(text: str):
    normal = escape_normaliser(unreserved=False, specials=False, excluded=False)

    def spelt(found: re.Match[str]) -> str:
        return found[0].upper() if found[0][0] == "%" else f"%{ord(found[0]):02X}"

    assert normal(text) == re.sub("%[0-9A-Fa-f]{2}|[\x80-\xff]", spelt, text)


@given(ESCAPES, st.integers(65_500, 65_540))
def test_a_text_is_rewritten_alike_wherever_it_stands_in_a_long_one(text: str, before: int):
    normal = escape_normaliser(unreserved=True, specials=False, excluded=True)

    assert normal("x" * before + text) == "x" * before + normal(text)


@pytest.mark.parametrize("shift", range(6))
def test_no_escape_is_cut_where_a_long_text_is(shift: int):
    normal = escape_normaliser(unreserved=True, specials=False, excluded=False)

    assert normal("x" * shift + "%41\xe9%4" * 30_000) == "x" * shift + "A%E9%4" * 30_000
