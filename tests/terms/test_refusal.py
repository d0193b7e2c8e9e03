"""refusal: pages that services send instead of a page, ordinary pages that speak of them or come through them, hostile input."""

import tomllib
from http import HTTPStatus
from pathlib import Path

import pytest
from multidict import CIMultiDict

from polite.errors import InvalidOption
from polite.terms.refusal import Refusal, RefusalKind, refusal
from tests.support import calls_of

RESPONSES = tomllib.loads((Path(__file__).parent / "refusals.toml").read_text(encoding="utf-8"))
LIMIT = 16_384
CHALLENGE = RESPONSES["cloudflare-challenge-without-its-field"]["body"]


def who(found: Refusal) -> str:
    return f"{found.kind} by {found.by}" if found.by else str(found.kind)


@pytest.mark.parametrize("name", RESPONSES)
def test_each_response_has_its_verdict_in_each_form_of_headers_and_body(name: str):
    response = RESPONSES[name]
    status, headers, body = response["status"], response["headers"], response.get("body")
    pairs = [(key.title().encode(), value.encode()) for key, value in headers.items()]

    found = refusal(status, headers, body)

    assert who(found) == response["is"]
    assert bool(found) is bool(found.because) is (response["is"] != "none")
    assert (
        found == refusal(status, pairs, body and body.encode()) == refusal(status, CIMultiDict(headers), body)
    )
    assert refusal(status, headers, f"\ufeff\r\n{body}".encode()) == found


def test_there_are_enough_of_both():
    refusals = [name for name, response in RESPONSES.items() if response["is"] != "none"]
    assert len(refusals) >= 12
    assert len(RESPONSES) - len(refusals) >= 25


def test_the_evidence_is_what_the_response_says_and_a_value_in_it_is_cut():
    assert str(refusal(402, {"Crawler-Price": "USD 0.01\x1b"})) == (
        "payment by Cloudflare (status 402; crawler-price: USD 0.01)"
    )
    assert len(refusal(402, {"Crawler-Price": "9" * 100_000}).because) < 200
    assert (
        refusal(403, (), CHALLENGE).because == "status 403; title: Just a moment...; body: window._cf_chl_opt"
    )
    assert str(refusal(HTTPStatus.OK, ())) == "none"
    assert Refusal() == refusal(200, ()) == Refusal(RefusalKind.NONE)


def test_what_is_beyond_the_limit_is_not_read_and_a_long_page_is_no_stub():
    stub = RESPONSES["imperva-challenge"]["body"].encode()
    comment = b"<!--" + b" " * (LIMIT - len(CHALLENGE) - 7) + b"-->"
    assert refusal(403, (), comment + CHALLENGE.encode())
    assert not refusal(403, (), comment + b" " * len(CHALLENGE) + CHALLENGE.encode())
    assert not refusal(403, (), comment + b" " * 300 + CHALLENGE.encode())
    assert refusal(200, (), stub.ljust(LIMIT))
    assert not refusal(200, (), stub.ljust(LIMIT + 1))


@pytest.mark.parametrize(
    "piece",
    [b"\xff", b"\0", b"<title", b"<title>", b"&#35;", b" ", b"\xef\xbb\xbf", b"Reference #18", b"\xc4\xb0"],
)
def test_hostile_bodies_cost_the_same_calls_as_short_ones(piece: bytes):
    def calls(octets: int) -> int:
        return calls_of(lambda: refusal(403, {"server": "AkamaiGHost"}, piece * (octets // len(piece))))

    assert not refusal(403, (), piece * LIMIT)
    assert calls(100 * LIMIT) <= calls(100) * 1.1 + 10


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        *(((status, ()), "status must be an integer from 0 to 999") for status in (True, "200", 200.0, None, -1, 1_000)),
        *(((200, headers), "headers must be a mapping or pairs") for headers in (None, 5, ["a"])),
        *(((200, (), body), "body must be bytes, str or None") for body in (5, [b"a"], Path())),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(arguments, problem):
    with pytest.raises(InvalidOption, match=problem):
        refusal(*arguments)
