"""WWW-Authenticate: the challenges of a response, and what a hostile field costs."""

from typing import Any

import pytest

from polite.http.challenge import Demand, challenges, demand
from tests.support import calls_of

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
def test_a_challenge_has_a_scheme_and_parameters_or_a_token(text: str, found: list[tuple[str, Any, Any]]):
    assert [(each.scheme, dict(each.parameters), each.token) for each in challenges(text)] == found


@pytest.mark.parametrize(
    "piece", ["a=b,", "a ", 'a="', "a b=c,", '\\"', ",", " ", 'a b="\\', "=", 'a="\\"', '"', "\\", "a b c,"]
)
def test_a_long_field_is_read_in_part_and_in_linear_time(piece: str):
    field = piece * (1_000_000 // len(piece))

    assert calls_of(lambda: list(challenges(field))) <= 50_000
    assert len(list(challenges(field))) <= 50


@pytest.mark.parametrize("status", [200, 401, 403, 429, None])
def test_a_price_on_another_status_asks_for_nothing(status: int | None) -> None:
    assert demand(status, [("crawler-price", "USD 0.01")]) is None


@pytest.mark.parametrize(
    "challenge",
    ['License error="invalid_request"', 'Basic realm="a, License b", License error="x"'],
)
@pytest.mark.parametrize("status", [401, 402])
def test_a_licence_challenge_is_found_among_others(status: int, challenge: str) -> None:
    assert demand(status, [("www-authenticate", challenge)]) == Demand(None, challenge.replace("\t", ""))


def test_what_is_told_is_short_and_printable() -> None:
    found = demand(402, [("crawler-price", "USD\x1b[31m 1" + "0" * 10_000)])

    assert found is not None
    assert found.price is not None
    assert len(found.price) < 501
    assert found.price.isprintable()
