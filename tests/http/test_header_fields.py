"""Header fields, in whatever form an HTTP client has them; links and challenges; and what a hostile field costs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from polite.errors import InvalidOption
from polite.http.challenge import Demand, challenges, demand
from polite.http.header_fields import age_s, links, selected, unix_time
from tests.support import calls_of, examples

WANTED = frozenset(("etag", "expires"))


def once(*pairs):
    yield from pairs


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"a"', "Server": "x"},
        [("etag", '"a"'), ("server", "x")],
        once(("ETAG", '"a"')),
        {b"ETag": b'"a"'},
        CIMultiDict({"eTag": '"a"'}),
    ],
)
def test_a_field_is_found_in_each_form_and_case(headers):
    assert [
        (name, value if isinstance(value, str) else value.decode())
        for name, value in selected(headers, WANTED)
    ] == [("etag", '"a"')]


def test_each_of_several_fields_is_returned() -> None:
    several = CIMultiDict([("ETag", '"a"'), ("Expires", "0"), ("etag", '"b"')])
    assert selected(several, WANTED) == [("etag", '"a"'), ("expires", "0"), ("etag", '"b"')]
    assert selected({"ETag": ['"a"', '"b"']}, WANTED) == [("etag", '"a"'), ("etag", '"b"')]


@pytest.mark.parametrize("headers", [5, [1, 2], ["etag"], [("etag",)]])
def test_what_is_no_header_is_refused(headers):
    with pytest.raises(InvalidOption, match="mapping or pairs"):
        selected(headers, WANTED)


DATES = (
    *("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"),
    *("sun, 6 nov 1994 8:49:37 gmt", "06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 09:49:37 +0100"),
)
NO_DATES = (
    *("", "0", "-1", "now", "1994-11-06", "Sun, 06 Nov 1994", "Sun, 06 Nov 94 08:49:37 GMT" * 3),
    *(f"{DATES[0]}, Sun, 06 Nov 1994 08:49:38 GMT", f"{DATES[0]}\r\nX: y", f"{DATES[0]}\n"),
    *("Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 ٠٠٠٠"),
)


@pytest.mark.parametrize(
    ("text", "time"), [*((date, 784_111_777.0) for date in DATES), *((text, None) for text in NO_DATES)]
)
def test_a_date_in_each_form_that_servers_send_is_read_and_what_is_no_date_is_none(text, time):
    assert unix_time(text) == time


@examples(100, fast=20)
@given(st.text(max_size=80))
def test_garbage_never_raises(text: str) -> None:
    unix_time(text)
    assert age_s(text) >= 0


RSL = {"rel": "license", "type": "application/rsl+xml"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<https://a.example/l.xml>; rel="license"; type="application/rsl+xml"', [("https://a.example/l.xml", RSL)]),
        ("< /l.xml > ;rel=license ; TYPE = application/rsl+xml", [("/l.xml", RSL)]),
        ("<a>; rel=next,<b>;;;rel=license;type=application/rsl+xml", [("a", {"rel": "next"}), ("b", RSL)]),
        ('<a>; title="<b>; rel=license, \\"x\\""; rel=up', [("a", {"title": '<b>; rel=license, "x"', "rel": "up"})]),
        ("<a>; rel=first; REL=second", [("a", {"rel": "first"})]),
        ("<a>; crossorigin; rel=x", [("a", {"crossorigin": "", "rel": "x"})]),
        ("<a> rel=license", [("a", {})]),
        ('<a>; rel="unclosed', [("a", {"rel": ""})]),
        ("<a", []),
        ("rel=license", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_link_has_a_target_and_parameters(text: str, found: list[tuple[str, dict[str, str]]]):
    assert [(link.target, dict(link.parameters)) for link in links(text)] == found


LICENSE = 'License error="invalid_request", error_description="Access, by \\"law\\"", authorization_uri="https://a.example/t?x=1,2"'
LICENSED = {
    "error": "invalid_request",
    "error_description": 'Access, by "law"',
    "authorization_uri": "https://a.example/t?x=1,2",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LICENSE, [("license", LICENSED, None)]),
        # RFC 9110, 11.6.1
        (
            'Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="simple"',
            [
                ("newauth", {"realm": "apps", "type": "1", "title": 'Login to "apps"'}, None),
                ("basic", {"realm": "simple"}, None),
            ],
        ),
        ("License", [("license", {}, None)]),
        ("Basic,License", [("basic", {}, None), ("license", {}, None)]),
        ("Negotiate abc==, License error=x", [("negotiate", {}, "abc=="), ("license", {"error": "x"}, None)]),
        (", ,License a=b,,C = d, a=z", [("license", {"a": "b", "c": "d"}, None)]),
        # Not by the RFC, but a challenge is there.
        ('License error="x" uri=https://a/?b', [("license", {"error": "x", "uri": "https://a/?b"}, None)]),
        ('License error="unclosed, Basic realm="x"', [("license", {}, None)]),
        ("License = x, Basic", [("license", {}, None), ("basic", {}, None)]),
        ('Basic realm="License error=x"', [("basic", {"realm": "License error=x"}, None)]),
        ('"License a=b", Basic', [("basic", {}, None)]),
        ('Basic realm="x, License', [("basic", {}, None)]),
        ("", []),
        ('"', []),
        ("\\", []),
    ],
)  # fmt: skip
def test_a_challenge_has_a_scheme_and_parameters_or_a_token(text, found):
    assert [(each.scheme, dict(each.parameters), each.token) for each in challenges(text)] == found


@pytest.mark.parametrize(
    ("read", "most", "pieces"),
    [
        (links, 200, ["<", "<>", "<a>;", '<a>; a="', "<a>;a=b,", '<a>;a="\\', " ", ";", '"', "<a>, "]),
        (challenges, 50, ["a=b,", "a ", 'a="', "a b=c,", '\\"', ",", " ", 'a b="\\', "=", 'a="\\"', '"', "\\", "a b c,"]),
    ],
)  # fmt: skip
def test_a_long_field_is_read_in_part_and_in_linear_time(read, most, pieces):
    for piece in pieces:
        field = piece * (1_000_000 // len(piece))
        assert calls_of(lambda field=field: list(read(field))) <= 50_000, piece
        assert len(list(read(field))) <= most, piece


@pytest.mark.parametrize("status", [200, 401, 403, 429, None])
def test_a_price_on_another_status_asks_for_nothing(status: int | None) -> None:
    assert demand(status, [("crawler-price", "USD 0.01")]) is None


@pytest.mark.parametrize(
    "challenge", ['License error="invalid_request"', 'Basic realm="a, License b", License error="x"']
)
@pytest.mark.parametrize("status", [401, 402])
def test_a_licence_challenge_is_found_among_others(status: int, challenge: str) -> None:
    assert demand(status, [("www-authenticate", challenge)]) == Demand(None, challenge.replace("\t", ""))


def test_what_is_told_is_short_and_printable() -> None:
    found = demand(402, [("crawler-price", "USD\x1b[31m 1" + "0" * 10_000)])
    assert found.price is not None
    assert len(found.price) < 501
    assert found.price.isprintable()
