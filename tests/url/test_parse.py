"""A URL string to its canonical parts; what is refused says why and where."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from polite.errors import InvalidURL
from polite.origin import Target
from polite.url.parse import MAX_URL, ParsedURL, normalise_path, parse_url

_BASE = parse_url("http://user:pw@example.com:8080/a/b?c#d")


def test_every_part_is_there():
    parsed = parse_url("HTTPS://us@er:p:w@Example.COM:0444/a/../b?c?'d#e`")
    assert parsed == ParsedURL("https", "us%40er", "p%3Aw", "example.com", 444, "/b", "c?%27d", "e%60")
    assert parsed.href == "https://us%40er:p%3Aw@example.com:444/b?c?%27d#e%60"
    assert (parsed.origin, parsed.path_and_query) == ("https://example.com:444", "/b?c?%27d")
    assert parse_url("http://example.com/\ud800").path == "/%EF%BF%BD"


@pytest.mark.parametrize(
    ("reference", "href"),
    [
        ("x", "gopher://host/x"),
        ("//h2/x", "gopher://h2/x"),
        ("\\\\x", "gopher://host/\\\\x"),
        ("?q'", "gopher://host?q'"),
    ],
)
def test_a_base_of_an_unknown_scheme_does_not_know_backslashes(reference, href):
    assert parse_url(reference, parse_url("gopher://host")).href == href


@pytest.mark.parametrize(
    ("url", "reason", "position"),
    [
        *(("", "scheme", 0), ("example.com/a", "scheme", 0)),
        *(("http://", "names no host", 7), ("http:///?x", "names no host", 8)),
        *(("http://user@/", "names no host", 12), ("gopher:///x", "names no host", 9)),
        ("mailto:someone@example.com", "no host", 7),
        ("file:///etc/passwd", "file:", 0),
        ("http://example.com:65536/", "out of range", 19),
        (f"http://example.com:{'9' * 5000}/", "out of range", 19),
        ("http://example.com:8a/", "port number", 19),
        ("http://example.com:٨/", "port number", 19),
        ("http://user:pw@exa mple.com/", r"U\+0020", 18),
        ("http://exa%zz/", r"U\+0025", 10),
        ("  ht\ttp://exa\n mple.com/", r"U\+0020", 14),
        ("http://1.2.3.4.5/", "IPv4", 7),
        (" http:// ", "names no host", 8),
    ],
)
def test_an_invalid_url_is_refused_with_the_reason_and_the_position(url, reason, position):
    with pytest.raises(InvalidURL, match=reason) as caught:
        parse_url(url)
    assert caught.value.position == position


@pytest.mark.parametrize("size", [MAX_URL + 1, 1_000_000])
def test_a_url_beyond_the_limit_is_refused_at_once(size):
    with pytest.raises(InvalidURL, match=f"MAX_URL = {MAX_URL}") as caught:
        parse_url("http://example.com/".ljust(size, "é"))
    assert caught.value.position == MAX_URL


def test_a_url_that_grows_beyond_the_limit_is_refused():
    with pytest.raises(InvalidURL, match="once encoded"):
        parse_url("http://example.com/" + "é" * 20_000)


@pytest.mark.parametrize("value", [None, b"http://example.com/", 1, ["http://example.com/"]])
def test_anything_but_a_str_is_a_type_error_that_names_the_type(value):
    with pytest.raises(TypeError, match=rf"got {type(value).__name__}: pass str\(url\)"):
        parse_url(value)


def test_a_refusal_shows_no_credential():
    with pytest.raises(InvalidURL) as caught:
        parse_url("http://user:secret@exa mple.com/")
    assert "secret" not in f"{caught.value!r} {caught.value.reason}"


@pytest.mark.parametrize("piece", ["/", "\\", "@", ":", "/..", "/%2e%2e", "[", "?", "1.", "xn--", "\t", "é."])
def test_no_repetition_takes_longer_than_its_length(piece):
    for head in ("http://", "http://a/", "http://a/?", "http://[", ""):
        url = (head + piece * MAX_URL)[:MAX_URL]
        try:
            parsed = parse_url(url, _BASE)
        except InvalidURL:
            continue
        assert parse_url(parsed.href) == parsed


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("a.test:18931", "http://a.test:18931"),
        ("localhost:8000/x", "http://localhost:8000"),
        ("127.0.0.1:8000?q", "http://127.0.0.1:8000"),
        *((url, None) for url in ("a.test", "mailto:x@y", "user.name:1234/5@host", "a.test:80@host")),
        *((url, None) for url in ("a.test:secret", "me:1234")),
    ],
)
def test_a_host_and_port_without_a_scheme_have_a_hint_and_other_texts_have_none(url, meant):
    with pytest.raises(InvalidURL) as caught:
        parse_url(url)
    assert ("did you mean" in str(caught.value)) is (meant is not None)
    assert meant is None or f"; did you mean {meant}? (at" in str(caught.value)


def test_many_dot_segments_cost_no_more_than_their_length():
    assert normalise_path("/a" * 10_000 + "/.." * 10_000) == "/"


# The glance that saves parsing (`polite.origin`): it may overlook a canonical URL, and must never take another for one.

_PIECES = [*"aB1-_.:/?#@%2eE'\"{}[]^|~\\ \té", "/%2e", "/.", "%2E"]


@example(["/%2e"], "a")
@given(st.lists(st.sampled_from(_PIECES), max_size=12), st.sampled_from(["", "a/"]))
def test_what_is_taken_for_plain_is_what_the_parser_makes_of_it(pieces, start):
    url = f"http://{start}{''.join(pieces)}"

    try:
        parsed = parse_url(url)
    except InvalidURL:
        with pytest.raises(InvalidURL):
            Target.of(url)
    else:
        assert Target.of(url).url == parsed.origin + parsed.path_and_query
