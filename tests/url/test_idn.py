"""Internationalised names to ASCII (UTS 46, as WHATWG URL asks for it)."""

import unicodedata

import pytest

from polite.url.errors import InvalidPart
from polite.url.idn import MAX_IDN, domain_to_ascii


@pytest.mark.parametrize(
    ("domain", "expected"),
    [
        ("Example.COM", "example.com"),
        ("müller.eu", "xn--mller-kva.eu"),
        ("MÜLLER.eu", "xn--mller-kva.eu"),
        ("mu\u0308ller.eu", "xn--mller-kva.eu"),
        ("faß.de", "xn--fa-hia.de"),
        ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
        ("ｅｘａｍｐｌｅ．com", "example.com"),
        ("a\u00adb.com", "ab.com"),
        ("\u00ad", ""),
        ("xn--mller-kva.é", "xn--mller-kva.xn--9ca"),
        ("a..é", "a..xn--9ca"),
        ("-é-", "xn-----bja"),
        ("ab--é", "xn--ab---epa"),
        ("क्\u200dष.com", "xn--11b2ezcw70k.com"),
        ("אב.com", "xn--4dbc.com"),
        ("1.א", "1.xn--4db"),
    ],
)
def test_a_name_has_one_spelling_in_ascii(domain, expected):
    assert domain_to_ascii(domain) == expected


def test_an_ascii_name_is_not_decoded():
    assert domain_to_ascii("xn--.XN--pokxncvks") == "xn--.xn--pokxncvks"


@pytest.mark.parametrize(
    ("domain", "reason"),
    [
        ("xn--.é", "to ASCII only"),
        ("xn--abc-.é", "to ASCII only"),
        ("xn--99999999.é", "Punycode"),
        ("xn--é", "outside ASCII"),
        ("xn--muller-xyd.é", "NFC"),
        ("xn--xn---epa.é", "another such label"),
        ("\u0308a", "combining mark"),
        ("a\ufffdb", r"U\+FFFD"),
        ("a\u0378b", r"U\+0378"),
        ("xn--a-ecp.é", r"U\+"),
        ("a\u200db", "joiner"),
        ("a\u200c", "joiner"),
        ("\U0003fc3f\u200d", "joiner"),
        ("אa", "right-to-left"),
        ("1א", "right-to-left"),
        ("a.אa", "right-to-left"),
        ("\U0003fc3f.א", "right-to-left"),
        ("é.xn--a-zhc", "right-to-left"),
    ],
)
def test_what_is_no_name_is_refused(domain, reason):
    with pytest.raises(InvalidPart, match=reason):
        domain_to_ascii(domain)


def test_a_name_beyond_the_limit_is_refused_before_it_costs_anything():
    with pytest.raises(InvalidPart, match=f"MAX_IDN = {MAX_IDN}"):
        domain_to_ascii("é" * (MAX_IDN + 1))


def test_an_ascii_name_has_no_limit_but_the_urls():
    assert domain_to_ascii("A" * 5000) == "a" * 5000


def test_the_python_tables_know_what_these_tests_use():
    assert unicodedata.unidata_version >= "14"
