"""What a response demands: the challenges of WWW-Authenticate (RFC 9110, 11.6.1), a price, a licence."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from polite.http.header_fields import QUOTED, WORD, Fields, first_of_each, text_of

# Characters of a field and challenges that are read: far more than any honest response has.
_LONGEST = 16_384
_MOST_CHALLENGES = 50
_END = r"(?=[ \t,]|\Z)"
_AUTH_PARAM = rf"{WORD}[ \t]*+=[ \t]*+(?:{QUOTED}|[^ \t\",]++){_END}"
_TOKEN68 = rf"[A-Za-z0-9._~+/-]++=*+{_END}(?![ \t]*+=)"
# A scheme, then one token68 (RFC 9110, 11.2) or parameters. Some servers separate parameters by spaces alone.
_CHALLENGE = re.compile(
    rf"({WORD}){_END}(?:[ \t]++(?:({_TOKEN68})|((?:[ \t,]*+{_AUTH_PARAM})+)))?", re.DOTALL
)
_SEPARATORS = re.compile(r"[ \t,]*+")
# What cannot be read, up to the next comma that is in no quotes. Quotes that are not closed hide the rest.
_JUNK = re.compile(rf'(?:[^,"\\]++|\\.|{QUOTED}|".*+|\\)*', re.DOTALL)


class Challenge(NamedTuple):
    """One challenge.

    Attributes:
        scheme: the scheme in lower case, such as "basic" or "license".
        parameters: the names in lower case, each with its first value.
        token: the token68 that some schemes have in the place of parameters, or None.
    """

    scheme: str
    parameters: Mapping[str, str]
    token: str | None = None


def challenges(text: str) -> Iterator[Challenge]:
    """Iterate over the challenges of a field. What is malformed is skipped.

    >>> list(challenges('License error="invalid_request", Basic realm="a"'))
    [Challenge(scheme='license', parameters={'error': 'invalid_request'}, token=None), \
Challenge(scheme='basic', parameters={'realm': 'a'}, token=None)]
    """
    text = text[:_LONGEST]
    yield from islice(_challenges(text), _MOST_CHALLENGES)


def _challenges(text: str) -> Iterator[Challenge]:
    position = 0
    while (position := _end(_SEPARATORS, text, position)) < len(text):
        if found := _CHALLENGE.match(text, position):
            yield Challenge(found[1].lower(), first_of_each(found[3] or ""), found[2])
            position = found.end()
        position = _end(_JUNK, text, position)


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where a match ends that starts here. The pattern matches any text, an empty one too."""
    found = pattern.match(text, start)
    return start if found is None else found.end()


DEMANDING = (401, 402)
_PRICE, _DEMAND = "crawler-price", "www-authenticate"
DEMAND_FIELDS = frozenset({_PRICE, _DEMAND})
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
    demands = [text_of(value) for name, value in fields if name == _DEMAND]
    licenses = [text for text in demands if any(each.scheme == "license" for each in challenges(text))]
    if not prices and not licenses:
        return None
    return Demand(_shown(prices), _shown(licenses))


def _shown(texts: list[str]) -> str | None:
    if not texts:
        return None
    return "".join(c for c in ", ".join(texts)[:_TOLD] if c.isprintable()).strip()
