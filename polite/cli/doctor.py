"""`polite doctor`: checks a crawler's name and the page that it names."""

import argparse
import asyncio
import json
import re
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import NamedTuple

import aiohttp

from polite.cli.options import fetching_of
from polite.cli.terminal import Exit, spelled
from polite.errors import InvalidURL, InvalidUserAgent, redact_url
from polite.integrations.session import open_session
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.decision import Disallowed, RobotsUnreachable
from polite.signing.card import product_token


class Verdict(StrEnum):
    """How serious a check is."""

    OK = "ok"
    # What polite cannot see, or what is an option.
    YOURS = "yours"
    WARNING = "warning"
    PROBLEM = "problem"


class Check(NamedTuple):
    """One result.

    Attributes:
        section: The section of the best practices (draft-illyes-webbotauth-cbcp-01).
    """

    section: str
    verdict: Verdict
    text: str


# Section 2.2 is about the header and the page that it names.
_OK, _WARNING, _PROBLEM = (partial(Check, "2.2", Verdict[each]) for each in ("OK", "WARNING", "PROBLEM"))
_YOURS = Verdict.YOURS
_URL = re.compile(r"https?://[^\s;,()<>\"']+", re.IGNORECASE)
_MAIL = re.compile(r"[^\s;,()<>\"'@]+@[^\s;,()<>\"'@]+\.[A-Za-z]{2,}")
# What identifies a piece of software that many crawlers use.
_LIBRARIES = """
aiohttp apache-httpclient axios crawlee crawl4ai curl go-http-client guzzlehttp headlesschrome httpx httpx2 java lwp
libwww-perl mechanize niquests node node-fetch okhttp phantomjs php playwright polite-cli puppeteer python python-aiohttp
python-httpx python-requests python-urllib requests ruby scrapy selenium undici urllib wget
"""
_GENERIC = """
agent bot client crawl crawler fetcher my mybot robot scraper spider test testbot
"""
# Crawlers that sites know: https://www.robotstxt.org lists hundreds; these are the ones that are imitated.
_KNOWN_CRAWLERS = """
ahrefsbot amazonbot applebot applebot-extended baiduspider bingbot bytespider ccbot chatgpt-user claudebot duckduckbot
facebookexternalhit facebot gptbot google-extended googlebot googlebot-image googlebot-news googleother ia_archiver
linkedinbot meta-externalagent mj12bot msnbot oai-searchbot perplexitybot petalbot pinterestbot semrushbot seznambot slurp
telegrambot twitterbot yandex yandexbot
"""
_EXAMPLES = (".example.com", ".example.org", ".example.net", ".example", ".test", ".invalid", ".localhost")


def check_header(header: str) -> Iterator[Check]:
    """Yield what is right and wrong about a header, the product token first."""
    try:
        agent = UserAgent(header)
    except InvalidUserAgent as error:
        yield _PROBLEM(str(error))
        return
    yield from _check_name(header, agent.named[0], product_token(agent))
    url = page_of(header)
    if url is None:
        page = "add that of a page about the crawler, such as (+https://yourdomain/bot)"
        if _MAIL.search(header):
            yield _WARNING(f"it has only a mail address: {page}")
        else:
            yield _PROBLEM(f"it has no URL: {page}")
        return
    try:
        origin = Target.of(url).origin
    except InvalidURL as error:
        yield _PROBLEM(f"the URL in it: {error}")
        return
    shown = redact_url(url)
    if f".{origin.host}".endswith(_EXAMPLES):
        yield _WARNING(f"{shown} is an address of examples: name a page of yours")
    elif origin.scheme != "https":
        yield _WARNING(f"{shown} is not https: anyone on the way can change what it says")
    else:
        yield _OK(f"it names a page: {shown}")


def page_of(header: str) -> str | None:
    """Return the URL that a header names first, or None."""
    found = _URL.search(header)
    return None if found is None else found[0].rstrip(".")


def _check_name(header: str, name: str, spelled: str) -> Iterator[Check]:
    """Yield whether the name is the crawler's own, and whether robots.txt can address it as it is written."""
    if name == "mozilla":
        yield _PROBLEM(
            "it is a browser's header: sites cannot tell the crawler from a person, and robots.txt addresses it as `mozilla`; "
            "write ExampleBot/1.0 (+URL), or Mozilla/5.0 (compatible; ExampleBot/1.0; +URL)"
        )
        return
    if name in _LIBRARIES.split():
        yield _PROBLEM(
            f"`{spelled}` names a piece of software that many use: robots.txt cannot address this crawler alone"
        )
        return
    if name in _KNOWN_CRAWLERS.split():
        yield _PROBLEM(f"`{spelled}` is the name of a crawler that sites know: use one of your own")
        return
    if name in _GENERIC.split():
        yield _WARNING(
            f"`{spelled}` is a name that many crawlers have: choose one that says whose crawler it is, and what for"
        )
    # The rest of the name if the product token is only its beginning, such as `My Bot` in `My Bot/1.0`.
    # A second product (`ExampleBot Foo/1.0`) cannot be told from a name of two words, so both are warned of.
    following = re.match(r"[^/();,+]*", header[header.find(spelled) + len(spelled) :])
    rest = "" if following is None else following[0].rstrip()
    if rest.strip() and not rest.startswith((":", "=")):
        whole = f"{spelled}{rest}"
        yield _WARNING(
            f"robots.txt addresses it as `{name}`, not as `{whole}`: a product token has letters, - and _ only (RFC 9309, 2.2.1); "
            f"write {re.sub(r'[^A-Za-z0-9_-]', '', whole)}, or {re.sub(r'[^A-Za-z0-9_-]+', '-', whole)}"
        )
    elif any(character.isdigit() for character in name):
        yield _WARNING(
            f"`{spelled}` has digits: a product token has letters, - and _ only (RFC 9309, 2.2.1); some parsers stop before them"
        )
    else:
        yield _OK(f"robots.txt addresses it as `{spelled}`, a product token")


# Octets of the page that are read.
_MOST = 1 << 20
_MOST_REDIRECTS = 5
# robots.txt, the page and its redirects may take so many times --timeout together.
_MOST_TIMES = 4
_MAIL_ON_PAGE = re.compile(r"mailto:|[\w.+-]{1,64}(?:@|\s?\[at\]\s?)[\w-]{1,63}\.[a-z]", re.IGNORECASE)
_LINK = re.compile(r"<link\b[^>]{0,500}\brel\s*=\s*[\"']?[^\"'>]{0,100}\bclient-ranges\b", re.IGNORECASE)


async def _visit(options: argparse.Namespace, url: str) -> tuple[list[Check], Exit]:
    """Fetch the page as the crawler itself would: if its robots.txt allows that, and within limits."""
    agent, shown = UserAgent(options.agent), redact_url(url)
    fetching = fetching_of(options)
    try:
        async with (
            asyncio.timeout(_MOST_TIMES * fetching.timeout),
            open_session(agent, fetching=fetching, resolver=options.resolve) as session,
            session.get(url, max_redirects=_MOST_REDIRECTS) as response,
        ):
            body = await response.content.read(_MOST)
            while more := await response.content.read(_MOST - len(body)):
                body += more
    except RobotsUnreachable as error:
        failed = _PROBLEM(f"{shown} was not fetched: {error.decision}")
    except Disallowed as error:
        failed = _WARNING(f"{shown} is closed to the crawler it is about: {error.decision}")
    except (aiohttp.ClientError, TimeoutError, OSError, InvalidURL) as error:
        failed = _PROBLEM(f"{shown} was not fetched: {str(error) or type(error).__name__}")
    else:
        return list(_check_page(agent, response, body.decode("utf-8", "replace"))), Exit.ALLOWED
    return [failed, *unseen("the page was not fetched")], Exit.UNREACHABLE


def _check_page(agent: UserAgent, response: aiohttp.ClientResponse, text: str) -> Iterator[Check]:
    """Yield what the page says, and what it does not."""
    shown = redact_url(str(response.url))
    if response.status != 200:
        yield _PROBLEM(f"{shown} is no page: the server returned status {response.status}")
        return
    yield _OK(f"{shown} is there")
    token, lower = product_token(agent), text.lower()
    named = token.lower() in lower
    links = ", ".join(response.headers.getall("Link", []))
    for section, holds, good, bad in (
        ("2.6", named, f"it names `{token}`", f"it does not name `{token}`"),
        ("2.6", _MAIL_ON_PAGE.search(text), "it has a mail address", "it has no mail address to write to"),
        (
            "2.6",
            "user-agent:" in lower and "disallow" in lower and named,
            "it has an example of a robots.txt",
            f"it has no robots.txt that blocks the crawler: show `User-agent: {token}` and `Disallow: /`",
        ),
        (
            "2.5",
            "client-ranges" in links.lower() or _LINK.search(text),
            "it links the addresses that the crawler comes from",
            'it links no address ranges: add <link rel="client-ranges" href="https://yourdomain/ranges.json">',
        ),
    ):
        yield Check(section, Verdict.OK if holds else Verdict.WARNING, good if holds else bad)
    yield Check("2.6", _YOURS, "whether it says what the data is used for, and whether pages are rendered")


# What polite does for each crawler, and what it leaves to its operator; docs/explanation/best-practices.md has the tests.
BY_POLITE = (
    Check("2.1", Verdict.OK, "polite obeys robots.txt; polite.indexing reads Robots-Tag"),
    Check("2.3", Verdict.OK, "polite paces requests, and backs off on 429, 503, failures and slow responses"),
    Check(
        "2.4", _YOURS, "conditional requests: open_gate(recrawl=RecrawlPolicy()), or polite fetch --recrawl"
    ),
)


def doctor(options: argparse.Namespace) -> Exit:
    """Print the checks. Return 1 if there is a warning or a problem, 3 if the page was not fetched."""
    checks, status = list(check_header(options.agent)), Exit.ALLOWED
    url = page_of(options.agent)
    # A header that cannot be sent has no other check.
    if url is None or len(checks) == 1:
        checks += unseen("no page is known")
    elif options.offline:
        checks += unseen("not looked for: --offline")
    else:
        found, status = asyncio.run(_visit(options, url))
        checks += found
    for check in sorted([*checks, *BY_POLITE], key=lambda check: check.section):
        text = spelled(check.text)
        if options.json:
            print(json.dumps({"practice": check.section, "verdict": check.verdict, "text": text}))
        else:
            print(f"{check.section}  {check.verdict:8} {text}")
    if any(check.verdict in (Verdict.WARNING, Verdict.PROBLEM) for check in checks):
        return max(status, Exit.DISALLOWED)
    return status


def unseen(because: str) -> list[Check]:
    """Return what only the page could tell."""
    return [
        Check("2.5", _YOURS, f"a page with the addresses that the crawler comes from ({because})"),
        Check("2.6", _YOURS, f"a page that says how to block it, and what the data is used for ({because})"),
    ]
