"""The card of a crawler: who it is and how it behaves, as JSON."""

from collections.abc import Sequence
from typing import Any

from polite.errors import InvalidOption
from polite.origin import Target
from polite.robots.agent import UserAgent

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
