"""IPv4 in every spelling, IPv6 parsed and compressed."""

import pytest

from polite.url.errors import InvalidPart
from polite.url.host import ends_in_number, parse_ipv4, parse_ipv6


@pytest.mark.parametrize("host", ["1", "a.1", "1.2.3.4.", "0x", "a.0x", "a.0xff", "09", "1.2.3.08."])
def test_a_host_whose_last_label_is_a_number_is_an_address(host):
    assert ends_in_number(host)


@pytest.mark.parametrize("host", ["", "a", "1a", "1.a", "1..", "0xg", "a1", "1.2.3.4a", "."])
def test_any_other_host_is_a_name(host):
    assert not ends_in_number(host)


@pytest.mark.parametrize(
    ("spelling", "address"),
    [
        ("192.168.0.1", "192.168.0.1"),
        ("192.168.0.1.", "192.168.0.1"),
        ("3232235521", "192.168.0.1"),
        ("0xc0a80001", "192.168.0.1"),
        ("030052000001", "192.168.0.1"),
        ("0300.0xa8.1", "192.168.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x", "0.0.0.0"),
        ("0", "0.0.0.0"),
        ("00", "0.0.0.0"),
        ("255.255.65535", "255.255.255.255"),
        ("4294967295", "255.255.255.255"),
        ("0x00000000000000000000000001", "0.0.0.1"),
    ],
)
def test_every_spelling_of_an_ipv4_address_is_read(spelling, address):
    assert parse_ipv4(spelling) == address


@pytest.mark.parametrize(
    "spelling",
    [
        "256.1.1.1",
        "1.256.1",
        "1.1.1.256",
        "1.2.65536",
        "4294967296",
        "1.2.3.4.5",
        "1..2",
        "08",
        "a.1",
        "0xg.1",
        "9" * 5000,
    ],
)
def test_a_number_that_is_no_ipv4_address_is_refused(spelling):
    with pytest.raises(InvalidPart, match="IPv4"):
        parse_ipv4(spelling)


@pytest.mark.parametrize(
    ("spelling", "address"),
    [
        ("::", "::"),
        ("::1", "::1"),
        ("1::", "1::"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:0:0:2:3:0:0:4", "1::2:3:0:0:4"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("2001:DB8::00ab", "2001:db8::ab"),
        ("::127.0.0.1", "::7f00:1"),
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
        "",
        ":",
        ":::",
        "1::2::3",
        ":1::2",
        "1:2:3",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4::5:6:7:8",
        "12345::",
        "g::",
        "1.2.3.4::",
        "::1.2.3",
        "::01.2.3.4",
        "::256.1.1.1",
        "1:2:3:4:5:6:7:1.2.3.4",
        "fe80::1%eth0",
        "0" * 50,
    ],
)
def test_what_is_no_ipv6_address_is_refused(spelling):
    with pytest.raises(InvalidPart, match="IPv6"):
        parse_ipv6(spelling)
