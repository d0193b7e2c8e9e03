"""Checks of the page that a User-Agent header names: is it there, and does it say what the best practices want?"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp

from polite.cli.doctor.check import Check, Verdict
from polite.errors import InvalidURL, redact_url
from polite.integrations.session import open_session
from polite.robots.agent import UserAgent
from polite.robots.errors import Disallowed, RobotsUnreachable
from polite.robots.policy import FetchPolicy
from polite.signing.card import product_token

# Octets of the page that are read.
_MOST = 1 << 20
_MOST_REDIRECTS = 5
# robots.txt, the page and its redirects may take so many times --timeout together.
_MOST_TIMES = 4
_SAYS, _RANGES, _NAMED = "2.6", "2.5", "2.2"
_MAIL = re.compile(r"mailto:|[\w.+-]{1,64}(?:@|\s?\[at\]\s?)[\w-]{1,63}\.[a-z]", re.IGNORECASE)
_LINK = re.compile(r"<link\b[^>]{0,500}\brel\s*=\s*[\"']?[^\"'>]{0,100}\bclient-ranges\b", re.IGNORECASE)


@dataclass(frozen=True)
class Page:
    """A page as it came.

    Attributes:
        url: Where it came from, after redirects.
        links: Its Link header fields.
    """

    url: str
    status: int
    text: str
    links: str


class NotFetched(Exception):
    """The page was not fetched; the check says why."""

    def __init__(self, check: Check) -> None:
        super().__init__(check.text)
        self.check = check


async def fetch(agent: UserAgent, url: str, fetching: FetchPolicy, names: dict[str, str] | None) -> Page:
    """Fetch the page as the crawler itself would: if its robots.txt allows that, and within limits. Raises NotFetched."""
    shown = redact_url(url)
    try:
        async with (
            asyncio.timeout(_MOST_TIMES * fetching.timeout),
            open_session(agent, fetching=fetching, resolver=names) as session,
            session.get(url, max_redirects=_MOST_REDIRECTS) as response,
        ):
            body = await response.content.read(_MOST)
            while more := await response.content.read(_MOST - len(body)):
                body += more
            links = ", ".join(response.headers.getall("Link", []))
            return Page(str(response.url), response.status, body.decode("utf-8", "replace"), links)
    except RobotsUnreachable as error:
        raise NotFetched(
            Check(_NAMED, Verdict.PROBLEM, f"{shown} was not fetched: {error.decision}")
        ) from error
    except Disallowed as error:
        said = f"{shown} is closed to the crawler it is about: {error.decision}"
        raise NotFetched(Check(_NAMED, Verdict.WARNING, said)) from error
    except (aiohttp.ClientError, TimeoutError, OSError, InvalidURL) as error:
        said = f"{shown} was not fetched: {str(error) or type(error).__name__}"
        raise NotFetched(Check(_NAMED, Verdict.PROBLEM, said)) from error


def check_page(agent: UserAgent, page: Page) -> Iterator[Check]:
    """Yield what the page says, and what it does not."""
    shown = redact_url(page.url)
    if page.status != 200:
        yield Check(_NAMED, Verdict.PROBLEM, f"{shown} is no page: the server returned status {page.status}")
        return
    yield Check(_NAMED, Verdict.OK, f"{shown} is there")
    token, text = product_token(agent), page.text.lower()
    named = token.lower() in text
    yield _said(named, f"it names `{token}`", f"it does not name `{token}`")
    yield _said(
        _MAIL.search(page.text) is not None, "it has a mail address", "it has no mail address to write to"
    )
    yield _said(
        "user-agent:" in text and "disallow" in text and named,
        "it has an example of a robots.txt",
        f"it has no robots.txt that blocks the crawler: show `User-agent: {token}` and `Disallow: /`",
    )
    yield Check(
        _SAYS, Verdict.YOURS, "whether it says what the data is used for, and whether pages are rendered"
    )
    ranges = "client-ranges" in page.links.lower() or _LINK.search(page.text) is not None
    yield Check(
        _RANGES,
        Verdict.OK if ranges else Verdict.WARNING,
        "it links the addresses that the crawler comes from"
        if ranges
        else 'it links no address ranges: add <link rel="client-ranges" href="https://yourdomain/ranges.json">',
    )


def _said(holds: bool, good: str, bad: str) -> Check:  # noqa: FBT001 - read at the call
    return Check(_SAYS, Verdict.OK if holds else Verdict.WARNING, good if holds else bad)
