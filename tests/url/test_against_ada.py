"""Nasty URLs, read by us and by ada (the WHATWG parser of Node.js): not one may differ."""

from contextlib import suppress

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polite.errors import InvalidURL
from polite.origin import Target
from polite.url.parse import DEFAULT_PORTS, parse_url


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
