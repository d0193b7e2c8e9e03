"""Nasty URLs, read by us and by ada (the WHATWG parser of Node.js): not one may differ."""

import random
import unicodedata
from contextlib import suppress
from functools import cache

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidURL
from polite.origin import Target
from polite.url.parse import DEFAULT_PORTS, parse_url

_SEEDS = range(9309, 9329)

_ROUNDS = 5_000


@cache
def _characters_both_know() -> str:
    """The characters of Unicode 3.2, which every later version knows.

    ada's tables of marks and directions are those of Unicode 13, idna's and Python's are newer, each by itself: on
    characters that came later the three may differ. U+1734 is left out because Unicode 14 made another kind of mark of it.
    """
    old = unicodedata.ucd_3_2_0
    return "".join(
        c
        for c in map(chr, range(0x80, 0x110000))
        if old.category(c) not in ("Cn", "Cs", "Co") and c != "\u1734"
    )


_SCHEMES = ["http", "https", "HTTP", "hTtPs", "ftp", "ws", "wss", "ht\ttp", " http", "\x00https"]

_SLASHES = ["//", "//", "//", "//", "", "/", "\\\\", "/\\", "///", "/\t/", "\n//"]

_LABELS = [
    "example", "EXAMPLE", "com", "org", "a", "b-c", "-", "_", "xn--", "xn--mller-kva", "XN--Mller-KVA",
    "xn--a", "x--y", "müller", "MÜLLER", "faß", "ẞ", "例え", "テスト", "💩", "ﬁ", "ｅｘ", "①", "á", "́a", "\xad",
    "\u200b", "क्\u200dष", "a\u200db", "ب\u200cب", "אב", "א1", "1א", "אa", "عربي", "١٢", "σς", "İ", "ı",
    "K", "≠", "≠", "�", "%41", "%C3%BC", "%2e", "%2E", "%00", "%", "%zz", "%ff", "%EF%BC%8E", "%30", "。",
    "．", "a.b", "~", "!", "'", "", '"',
]  # fmt: skip

_NUMBERS = [
    "0", "1", "127", "255", "256", "0x7f", "0X7F", "0x", "017", "08", "09", "65535", "4294967295",
    "4294967296", "0xffffffff", "0x100000000", "00000000001", "１", "①", "%31", "1e1", "-1", "+1", "0o7",
    "99999999999999", "",
]  # fmt: skip

_IPV6 = [
    "0", "1", "ffff", "FFFF", "00ab", "12345", "g", "1.2.3.4", "01.2.3.4", "256.1.1.1", "::", "%25", "0",
    "", "", "",
]  # fmt: skip

_ODD = "\t\n\r \x00\x01\x1f\x7f\x80\xa0!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

_PORTS = [
    ":", ":80", ":443", ":21", ":0", ":00080", ":65535", ":65536", ":8a", ":-1", ":999999", "", "", "", "",
    "", "", ":\t8",
]  # fmt: skip

_USERS = [
    "u@", "u:p@", "@", ":@", ":p@", "a@b@", "u:p:q@", "ü:%40@", "u\\@", "u/p@", "u'|^@", "", "", "", "", "",
]  # fmt: skip

_SEGMENTS = [
    "a", "B", ".", "..", "%2e", "%2E%2e", ".%2e", "...", ".a", "é", "%", "%zz", "%C3", "\\", "\\..\\", ";x",
    "💩", "^", "{}", "|", "`", "'", "<>", "[]", "\x7f", "\x00", "@", ":", "C:", "~", "\ufffe", "robots.txt",
    "", "a b", "\t.", "a\nb", '"',
]  # fmt: skip


def _host(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.4:
        return ".".join(rng.choices(_LABELS, k=rng.randint(1, 3)))
    if kind < 0.55:
        return ".".join(rng.choices(_NUMBERS, k=rng.randint(1, 5))) + rng.choice(["", "", "", "."])
    if kind < 0.65:
        return f"[{':'.join(rng.choices(_IPV6, k=rng.randint(1, 9)))}" + rng.choice(["]", "]", "]", "", "]x"])
    if kind < 0.8:
        return "".join(rng.choices(_characters_both_know(), k=rng.randint(1, 3))) + rng.choice(
            ["", ".com", "a"]
        )
    if kind < 0.9:
        return f"ex{rng.choice(_ODD)}ample.com"
    return "www.example.com"


def _tail(rng: random.Random) -> str:
    path = "".join(f"/{segment}" for segment in rng.choices(_SEGMENTS, k=rng.randint(0, 4)))
    query = f"?{rng.choice(_SEGMENTS)}{rng.choice(_ODD)}" if rng.random() < 0.3 else ""
    return path + query + (f"#{rng.choice(_SEGMENTS)}{rng.choice(_ODD)}" if rng.random() < 0.2 else "")


def _nasty_url(rng: random.Random) -> str:
    authority = rng.choice(_USERS) + _host(rng) + rng.choice(_PORTS)
    return f"{rng.choice(_SCHEMES)}:{rng.choice(_SLASHES)}{authority}{_tail(rng)}"


# Only what has an origin is compared: `mailto:` and `file:` are URLs to ada, and refused by us.
def _ours(url, base=None):
    try:
        parsed = parse_url(url, None if base is None else parse_url(base))
    except InvalidURL:
        return None
    return (parsed.origin, parsed.href) if parsed.scheme in DEFAULT_PORTS else None


def _adas(url, base=None):
    try:
        parsed = ada_url.URL(url, base)
    except ValueError:
        return None
    return (parsed.origin, parsed.href) if parsed.protocol[:-1] in DEFAULT_PORTS else None


# Each for one rule of the standard.
_HOSTS = [
    "ex%61mple.com", "m%C3%BCller.eu", "１２７.1", "%31%32%37.1", "[::0001]", "a_b!$&'()*+,;=`{}\"~", "example.com.",
    "a%00b", "a%", "a%zz", "a%ff", "a%2540b", "a／b", "%C2%AD", "[::1", "[::1]x", "1.256.1", "1.1.1.256", "1.2.65536",
    "4294967296", "017.1", "1.2.3.4.5", "1..2", "0xg.1", "9" * 5_000, "[::]", "[1::]", "[1:0:0:2:0:0:0:3]", "[1:0:0:2:3:0:0:4]",
    "[1:0:2:3:4:5:6:7]", "[2001:DB8::00ab]", "[::ffff:1.2.3.4]", "[1:2:3:4:5:6:1.2.3.4]", "[1:2:3:4:5:6:7::]", "[:]",
    "[1::2::3]", "[1:2:3]", "[1:2:3:4:5:6:7:8:9]", "[12345::]", "[1.2.3.4::]", "[::1.2.3]", "[::01.2.3.4]",
    "[::256.1.1.1]", "[1:2:3:4:5:6:7:1.2.3.4]", "MÜLLER.eu", "mu\u0308ller.eu", "faß.de", "例え。テスト", "a\u00adb.com",
    "\u00ad", "xn--mller-kva.é", "a..é", "ab--é", "क्\u200dष.com", "אב.com", "1.א", "xn--.XN--pokxncvks", "xn--.é",
    "xn--abc-.é", "xn--99999999.é", "xn--é", "xn--muller-xyd.é", "xn--xn---epa.é", "\u0308a", "a\ufffdb", "a\u0378b",
    "a\u200db", "a\u200c", "אa", "a.אa",
]  # fmt: skip
_URLS = [
    "http:example.com", "http:\\\\example.com\\a?\\", "http:////example.com//a", " \x00 ht\ntp://exam\tple.com/a\rb \x1f",
    "http://example.com:80/", "ftp://example.com:21", "http://example.com:00000000000000000443/", "http://example.com:0/",
    "http://example.com:65535/", "http://@example.com/", "http://:pw@example.com/", "http://example.com?",
    "http://example.com#", "http://[::1]:8080/", "http://example.com/\ufffd", "http://example.com/%zz%41?'",
    *map("http://{}/".format, _HOSTS),
]  # fmt: skip
_REFERENCES = [
    "", "#x", "?x", "x", "x/../y", "../../x", "/x", "\\x", "http:x", "http://x", "https:x", "//x", "///x", "1:x",
]  # fmt: skip


@pytest.mark.parametrize("url", _URLS, ids=lambda url: ascii(url[:30]))
def test_a_url_has_the_spelling_that_ada_gives_it_whether_its_origin_was_seen_before_or_not(url):
    assert _ours(url) == _adas(url)
    if _ours(url) is not None:
        parsed, first = parse_url(url), Target.of(url)
        assert (str(first.origin), first.path) == (parsed.origin, parsed.path_and_query)
        assert first == Target.of(url) == Target.of(first.url)


@pytest.mark.parametrize("reference", _REFERENCES)
def test_a_reference_is_resolved_as_ada_resolves_it(reference):
    base = "http://user:pw@example.com:8080/a/b?c#d"
    assert _ours(reference, base) == _adas(reference, base)


@given(st.text(max_size=30))
def test_any_text_at_all_gives_a_target_or_invalid_url(text):
    for url in (text, f"http://{text}", f"http://example.com/{text}"):
        with suppress(InvalidURL):
            target = Target.of(url)
            assert Target.of(target.url) == target


@pytest.mark.slow("random URLs", fast=1)
@pytest.mark.parametrize("seed", _SEEDS)
def test_a_hundred_thousand_random_urls_have_the_origin_and_the_href_that_ada_gives_them(seed):
    rng = random.Random(seed)
    urls = [_nasty_url(rng) for _ in range(_ROUNDS)]
    assert [(url, _ours(url), _adas(url)) for url in urls if _ours(url) != _adas(url)] == []
