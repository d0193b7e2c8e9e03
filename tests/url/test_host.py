"""The host of a URL in its one canonical spelling."""

import pytest

from polite.url.errors import InvalidPart
from polite.url.host import parse_host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("EXAMPLE.com", "example.com"),
        ("ex%61mple.com", "example.com"),
        ("m%C3%BCller.eu", "xn--mller-kva.eu"),
        ("0X7F.1", "127.0.0.1"),
        ("１２７.1", "127.0.0.1"),
        ("%31%32%37.1", "127.0.0.1"),
        ("[::0001]", "[::1]"),
        ("a_b!$&'()*+,;=`{}\"~", "a_b!$&'()*+,;=`{}\"~"),
        ("example.com.", "example.com."),
    ],
)
def test_a_host_has_one_spelling(text, host):
    assert parse_host(text, special=True) == host


@pytest.mark.parametrize("character", "\x00\x01\t\n\r\x1f #/:<>?@[\\]^|%\x7f")
def test_a_forbidden_character_is_refused_where_it_stands(character):
    with pytest.raises(InvalidPart, match=rf"U\+{ord(character):04X}") as caught:
        parse_host(f"ab{character}c", special=True)

    assert caught.value.position == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a%00b", r"U\+0000"),
        ("a%2Fb", r"U\+002F"),
        ("a%", r"U\+0025"),
        ("a%zz", r"U\+0025"),
        ("a%ff", r"U\+FFFD"),
        ("a%2540b", r"U\+0025"),
        ("a／b", r"U\+002F"),
        ("%C2%AD", "invisible"),
        ("[::1", "bracket"),
        ("[::1]x", "bracket"),
        ("1.2.3.256", "IPv4"),
        ("[1::2::3]", "IPv6"),
    ],
)
def test_what_is_no_host_is_refused(text, reason):
    with pytest.raises(InvalidPart, match=reason):
        parse_host(text, special=True)


@pytest.mark.parametrize(
    ("text", "host"),
    [("ExAmple", "ExAmple"), ("é", "%C3%A9"), ("a%20b", "a%20b"), ("1.256", "1.256"), ("[::0]", "[::]")],
)
def test_the_host_of_an_unknown_scheme_is_opaque(text, host):
    assert parse_host(text, special=False) == host


@pytest.mark.parametrize("text", ["a b", "a<b", "a\\b", "a^b", "a|b", "a]"])
def test_an_opaque_host_has_forbidden_characters_too(text):
    with pytest.raises(InvalidPart, match="not allowed"):
        parse_host(text, special=False)
