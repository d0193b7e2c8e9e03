"""What a server asks for instead of giving a page: a price or a licence."""

import pytest

from polite.http.challenge import Demand, demand


def test_a_402_names_a_price() -> None:
    assert demand(402, [("crawler-price", "USD 0.01")]) == Demand("USD 0.01", None)


@pytest.mark.parametrize("status", [200, 401, 403, 429, None])
def test_a_price_on_another_status_asks_for_nothing(status: int | None) -> None:
    assert demand(status, [("crawler-price", "USD 0.01")]) is None


@pytest.mark.parametrize(
    "challenge",
    [
        'License error="invalid_request"',
        "License",
        "license",
        'Basic realm="a, License b", License error="x"',
        'Bearer realm="x" , \tLICENSE x=1',
        'Basic realm="unclosed\\" quote", License',
    ],
)
@pytest.mark.parametrize("status", [401, 402])
def test_a_licence_challenge_is_found_among_others(status: int, challenge: str) -> None:
    assert demand(status, [("www-authenticate", challenge)]) == Demand(None, challenge.replace("\t", ""))


@pytest.mark.parametrize(
    "challenge",
    [
        'Basic realm="x"',
        'Basic realm="a, License b"',
        "Licensed x=1",
        "MyLicense",
        "Bearer License",
        'Basic realm="x, License',
    ],
)
def test_other_challenges_ask_for_no_licence(challenge: str) -> None:
    assert demand(401, [("www-authenticate", challenge)]) is None


def test_what_is_told_is_short_and_printable() -> None:
    found = demand(402, [("crawler-price", "USD\x1b[31m 1" + "0" * 10_000)])

    assert found is not None
    assert found.price is not None
    assert len(found.price) < 501
    assert found.price.isprintable()


def test_a_challenge_of_any_length_is_read_in_time() -> None:
    assert demand(401, [("www-authenticate", '"\\' * 1_000_000 + ", License")]) is None
