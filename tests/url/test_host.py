"""The host of a URL in its one canonical spelling."""

import pytest

from polite.url.errors import InvalidPart
from polite.url.host import parse_host, parse_ipv4, parse_ipv6


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("ex%61mple.com", "example.com"),
        ("m%C3%BCller.eu", "xn--mller-kva.eu"),
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
        ("a%", r"U\+0025"),
        ("a%zz", r"U\+0025"),
        ("a%ff", r"U\+FFFD"),
        ("a%2540b", r"U\+0025"),
        ("a／b", r"U\+002F"),
        ("%C2%AD", "invisible"),
        ("[::1", "bracket"),
        ("[::1]x", "bracket"),
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


@pytest.mark.parametrize(
    "spelling",
    ["1.256.1", "1.1.1.256", "1.2.65536", "4294967296", "1.2.3.4.5", "1..2", "0xg.1", "9" * 5000],
)
def test_a_number_that_is_no_ipv4_address_is_refused(spelling):
    with pytest.raises(InvalidPart, match="IPv4"):
        parse_ipv4(spelling)


@pytest.mark.parametrize(
    ("spelling", "address"),
    [
        ("::", "::"),
        ("1::", "1::"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:0:0:2:3:0:0:4", "1::2:3:0:0:4"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("2001:DB8::00ab", "2001:db8::ab"),
        ("::ffff:1.2.3.4", "::ffff:102:304"),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
    ],
)
def test_an_ipv6_address_has_one_spelling(spelling, address):
    assert parse_ipv6(spelling) == address


@pytest.mark.parametrize(
    "spelling",
    [
        ":",
        "1::2::3",
        "1:2:3",
        "1:2:3:4:5:6:7:8:9",
        "12345::",
        "1.2.3.4::",
        "::1.2.3",
        "::01.2.3.4",
        "::256.1.1.1",
        "1:2:3:4:5:6:7:1.2.3.4",
    ],
)
def test_what_is_no_ipv6_address_is_refused(spelling):
    with pytest.raises(InvalidPart, match="IPv6"):
        parse_ipv6(spelling)
