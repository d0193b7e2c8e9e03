"""What a server asks for before it gives a page: a price (402), or a licence (401 or 402)."""

from typing import NamedTuple

from polite.http.challenge import challenges
from polite.http.header_fields import Fields, text_of

DEMANDING = (401, 402)
_PRICE, _CHALLENGE = "crawler-price", "www-authenticate"
DEMAND_FIELDS = frozenset({_PRICE, _CHALLENGE})
_PAYMENT_REQUIRED = 402
# Characters of a field that are told.
_TOLD = 500


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
    licenses = [text for name, value in fields if name == _CHALLENGE and _of_license(text := text_of(value))]
    if not prices and not licenses:
        return None
    return Demand(_shown(prices), _shown(licenses))


def _of_license(text: str) -> bool:
    """Whether one of the challenges of a field has the scheme License."""
    return any(each.scheme == "license" for each in challenges(text))


def _shown(texts: list[str]) -> str | None:
    if not texts:
        return None
    return "".join(c for c in ", ".join(texts)[:_TOLD] if c.isprintable()).strip()
