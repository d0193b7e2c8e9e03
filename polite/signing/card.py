"""The card of a crawler: who it is and how it behaves, as JSON."""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from polite.errors import InvalidOption
from polite.http.message_signature import Component
from polite.options import integer
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.signing.key import SigningKey, signed_fields

WELL_KNOWN = "/.well-known/http-message-signatures-directory"
MEDIA_TYPE = "application/http-message-signatures-directory+json"
_TAG = "http-message-signatures-directory"
_MOST_KEYS = 16
_MOST_LIFETIME_S = 366 * 86_400
# A key that is removed works for as long as caches keep the directory, so not for long.
_MAX_AGE_S = 86_400


def key_directory(keys: Sequence[SigningKey]) -> bytes:
    """Return the body of the key directory (draft-ietf-webbotauth-httpsig-protocol-01, 29 October 2026, "Directory Format").

    Args:
        keys: The key that signs, and perhaps one that is to replace it, or that it replaced: 1 to 16.

    Raises:
        InvalidOption: There are none or too many, one twice, or one that the standards print.
    """
    if not 1 <= len(keys) <= _MOST_KEYS:
        raise InvalidOption(f"a key directory has 1 to {_MOST_KEYS} keys, got {len(keys)}")
    if len({key.thumbprint for key in keys}) < len(keys):
        raise InvalidOption("a key directory has each key once: two of these are the same")
    if any(key.is_an_example for key in keys):
        raise InvalidOption(
            "the key is an example of the standards, with which anyone can sign: make a new one"
        )
    return json.dumps({"keys": [key.public_jwk for key in keys]}, separators=(",", ":")).encode()


def directory_fields(
    keys: Sequence[SigningKey], body: bytes, authority: str, now: float, lifetime_s: int
) -> dict[str, str]:
    """Return the header fields of the response with a key directory (the same draft, "Possession Proof on the Directory Response").

    Each key signs for the authority, so another site cannot serve the keys as its own.

    Args:
        keys: Those of the directory.
        body: The response's body, octet for octet.
        authority: The host of the directory, with its port unless that is 443.
        now: Unix time.
        lifetime_s: Seconds until the signatures expire, 60 to 31,622,400.

    Raises:
        InvalidOption: The lifetime is out of its limits.
    """
    integer("directory_fields: lifetime_s", lifetime_s, least=60, most=_MOST_LIFETIME_S)
    digest = f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
    components: list[Component] = [('"@authority";req', authority), ('"content-digest"', digest)]
    signed = [
        signed_fields(key, f"binding{number or ''}", components, int(now), lifetime_s, _TAG)
        for number, key in enumerate(keys)
    ]
    return {
        "Content-Type": MEDIA_TYPE,
        "Cache-Control": f"max-age={_MAX_AGE_S}",
        "Content-Digest": digest,
        **{name: ", ".join(fields[name] for fields in signed) for name in signed[0]},
    }


# What this package obeys. The draft has no format for it yet.
_RATE_CONTROL = "Crawl-delay and Request-rate in robots.txt; 429 and 503 with Retry-After"


def crawler_card(
    agent: UserAgent,
    card_url: str,
    keys_url: str,
    *,
    about: str | None = None,
    contacts: Sequence[str] = (),
    purpose: str | None = None,
    ranges: str | None = None,
) -> dict[str, Any]:
    """Return a Signature Agent Card (draft-meunier-webbotauth-registry-04, 27 October 2026, "Signature Agent Card").

    It is an OAuth Client ID Metadata Document with one object of its own, `web_bot_auth`.

    Args:
        agent: The crawler.
        card_url: Where the card is served, exactly as others request it. Redirects are not followed there.
        keys_url: Where the key directory is served.
        about: The page about the crawler.
        contacts: URIs such as mailto:bot@example.com.
        purpose: What the data is for, such as search.
        ranges: The URL of the crawler's address ranges (draft-illyes-webbotauth-jafar).

    Raises:
        InvalidOption: A URL is none of https, or a contact is no URI.
    """
    for url in (card_url, keys_url, ranges):
        if url is not None and Target.of(url).origin.scheme != "https":
            raise InvalidOption(f"a card names https URLs only, got {url!r}")
    if odd := [contact for contact in contacts if ":" not in contact]:
        raise InvalidOption(f"a contact must be a URI such as mailto:bot@example.com, got {odd[0]!r}")
    card: dict[str, Any] = {"client_id": card_url, "client_name": product_token(agent)}
    if about is not None:
        card["client_uri"] = about
    if contacts:
        card["contacts"] = list(contacts)
    card["jwks_uri"] = keys_url
    card["web_bot_auth"] = {
        "expected-user-agent": agent.header,
        "rfc9309-product-token": product_token(agent),
        "rfc9309-compliance": True,
        "trigger": "crawler",
        **({} if purpose is None else {"purpose": purpose}),
        "rate-control": _RATE_CONTROL,
        "known-urls": ["/robots.txt"],
        **({} if ranges is None else {"ips_uri": ranges}),
    }
    return card


def product_token(agent: UserAgent) -> str:
    """Return the agent's first name, as its header spells it.

    >>> product_token(UserAgent("ExampleBot/1.0"))
    'ExampleBot'
    """
    name = agent.named[0]
    start = agent.header.lower().find(name)
    return name if start < 0 else agent.header[start : start + len(name)]
