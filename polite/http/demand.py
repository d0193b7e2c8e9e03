"""What a server asks for before it gives a page: a price (402), or a licence (401 or 402)."""

import re
from typing import NamedTuple

from polite.http.header_fields import Fields, text_of

DEMANDING = (401, 402)
_PRICE, _CHALLENGE = "crawler-price", "www-authenticate"
DEMAND_FIELDS = frozenset({_PRICE, _CHALLENGE})
_PAYMENT_REQUIRED = 402
# Characters of a field that are read, and that are told.
_LONGEST = 4_096
_TOLD = 500
# Possessive repeats keep each match linear. A quoted string may end with the field.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_LICENSE = re.compile(r"(?:\A|,)[ \t]*+License(?=[ \t,]|\Z)", re.IGNORECASE)


class Demand(NamedTuple):
    """What a response asks for. polite never pays, and never asks again for the same page.

    Attributes:
        price: The `crawler-price` of a 402, such as "USD 0.01" (Cloudflare's pay per crawl, April 2026); None if there is none.
        challenge: The `WWW-Authenticate` with the scheme License (RSL 1.0, 2025); None if there is none.
    """

    price: str | None
    challenge: str | None

    def __str__(self) -> str:
        return f"a price: {self.price}" if self.price is not None else f"a licence: {self.challenge}"


def demand(status: int | None, fields: Fields) -> Demand | None:
    """Return what a response with this status asks for, by its fields with names in lower case; None for nothing.

    >>> str(demand(402, [("crawler-price", "USD 0.01")]))
    'a price: USD 0.01'
    """
    if status not in DEMANDING:
        return None
    prices = [text_of(value) for name, value in fields if name == _PRICE and status == _PAYMENT_REQUIRED]
    challenges = [
        text for name, value in fields if name == _CHALLENGE and _of_license(text := text_of(value))
    ]
    if not prices and not challenges:
        return None
    return Demand(_shown(prices), _shown(challenges))


def _of_license(text: str) -> bool:
    """Whether one of the challenges of a field (RFC 9110, 11.6.1) has the scheme License."""
    return _LICENSE.search(_QUOTED.sub('""', text[:_LONGEST])) is not None


def _shown(texts: list[str]) -> str | None:
    if not texts:
        return None
    return "".join(c for c in ", ".join(texts)[:_TOLD] if c.isprintable()).strip()
