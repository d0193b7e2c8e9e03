"""`polite doctor`: checks a crawler's name and the page that it names."""

import argparse
import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import aiohttp

from polite.cli.option_names import command_line_text
from polite.cli.terminal import Exit
from polite.errors import InvalidURL, InvalidUserAgent, redact_url
from polite.integrations.session import open_session
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.decision import Disallowed, RobotsUnreachable
from polite.robots.policy import FetchPolicy
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


# Section 2.2 is about the header.
_HEADER = "2.2"
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
_EXAMPLES = ("example.com", "example.org", "example.net", ".example", ".test", ".invalid", "localhost")


def check_header(header: str) -> Iterator[Check]:
    """Yield what is right and wrong about a header, the product token first."""
    try:
        agent = UserAgent(header)
    except InvalidUserAgent as error:
        yield Check(_HEADER, Verdict.PROBLEM, str(error))
        return
    yield from _check_name(agent)
    yield from _check_url(agent)


def page_of(header: str) -> str | None:
    """Return the URL that a header names first, or None."""
    found = _URL.search(header)
    return None if found is None else found[0].rstrip(".")


def _check_name(agent: UserAgent) -> Iterator[Check]:
    name, spelled = agent.named[0], product_token(agent)
    if (whose := _whose(name, spelled)) is not None:
        yield Check(_HEADER, Verdict.PROBLEM, whose)
        return
    if name in _GENERIC.split():
        yield Check(
            _HEADER,
            Verdict.WARNING,
            f"`{spelled}` is a name that many crawlers have: choose one that says whose crawler it is, and what for",
        )
    yield _check_spelling(agent.header, name, spelled)


def _whose(name: str, spelled: str) -> str | None:
    """Say whose name it is, if it is not one of the crawler's own."""
    if name == "mozilla":
        return (
            "it is a browser's header: sites cannot tell the crawler from a person, and robots.txt addresses it as `mozilla`; "
            "write ExampleBot/1.0 (+URL), or Mozilla/5.0 (compatible; ExampleBot/1.0; +URL)"
        )
    if name in _LIBRARIES.split():
        return f"`{spelled}` names a piece of software that many use: robots.txt cannot address this crawler alone"
    if name in _KNOWN_CRAWLERS.split():
        return f"`{spelled}` is the name of a crawler that sites know: use one of your own"
    return None


def _check_spelling(header: str, name: str, spelled: str) -> Check:
    """Return whether robots.txt can address the name as it is written."""
    if cut := _cut(header, spelled):
        return Check(
            _HEADER,
            Verdict.WARNING,
            f"robots.txt addresses it as `{name}`, not as `{cut}`: a product token has letters, - and _ only (RFC 9309, 2.2.1); "
            f"write {re.sub(r'[^A-Za-z0-9_-]', '', cut)}, or {re.sub(r'[^A-Za-z0-9_-]+', '-', cut)}",
        )
    if any(character.isdigit() for character in name):
        return Check(
            _HEADER,
            Verdict.WARNING,
            f"`{spelled}` has digits: a product token has letters, - and _ only (RFC 9309, 2.2.1); some parsers stop before them",
        )
    return Check(_HEADER, Verdict.OK, f"robots.txt addresses it as `{spelled}`, a product token")


def _cut(header: str, spelled: str) -> str:
    """Return the whole name if the product token is only its beginning, such as `My Bot` in `My Bot/1.0`."""
    start = header.find(spelled)
    following = re.match(r"[^/();,+]*", header[start + len(spelled) :])
    rest = "" if following is None else following[0].rstrip()
    # A second product (`ExampleBot Foo/1.0`) cannot be told from a name of two words, so both are warned of.
    return f"{spelled}{rest}" if rest.strip() and not rest.startswith((":", "=")) else ""


def _check_url(agent: UserAgent) -> Iterator[Check]:
    url = page_of(agent.header)
    if url is None:
        mail = _MAIL.search(agent.header)
        said = "only a mail address" if mail else "no URL"
        yield Check(
            _HEADER,
            Verdict.WARNING if mail else Verdict.PROBLEM,
            f"it has {said}: add that of a page about the crawler, such as (+https://yourdomain/bot)",
        )
        return
    try:
        origin = Target.of(url).origin
    except InvalidURL as error:
        yield Check(_HEADER, Verdict.PROBLEM, f"the URL in it: {error}")
        return
    shown = redact_url(url)
    if f".{origin.host}".endswith(tuple(name if name[0] == "." else f".{name}" for name in _EXAMPLES)):
        yield Check(_HEADER, Verdict.WARNING, f"{shown} is an address of examples: name a page of yours")
    elif origin.scheme != "https":
        yield Check(
            _HEADER, Verdict.WARNING, f"{shown} is not https: anyone on the way can change what it says"
        )
    else:
        yield Check(_HEADER, Verdict.OK, f"it names a page: {shown}")


# Octets of the page that are read.
_MOST = 1 << 20
_MOST_REDIRECTS = 5
# robots.txt, the page and its redirects may take so many times --timeout together.
_MOST_TIMES = 4
_SAYS, _RANGES, _NAMED = "2.6", "2.5", "2.2"
_MAIL_ON_PAGE = re.compile(r"mailto:|[\w.+-]{1,64}(?:@|\s?\[at\]\s?)[\w-]{1,63}\.[a-z]", re.IGNORECASE)
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
        _MAIL_ON_PAGE.search(page.text) is not None,
        "it has a mail address",
        "it has no mail address to write to",
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


# What polite does for each crawler, and what it leaves to its operator; docs/explanation/best-practices.md has the tests.
BY_POLITE = (
    Check("2.1", Verdict.OK, "polite obeys robots.txt; polite.indexing reads Robots-Tag"),
    Check("2.3", Verdict.OK, "polite paces requests, and backs off on 429, 503, failures and slow responses"),
    Check(
        "2.4",
        Verdict.YOURS,
        "conditional requests: open_gate(recrawl=RecrawlPolicy()), or polite fetch --recrawl",
    ),
)


def doctor(options: argparse.Namespace) -> Exit:
    """Print the checks. Return 1 if there is a warning or a problem, 3 if the page was not fetched."""
    checks = list(check_header(options.agent))
    status = Exit.ALLOWED
    url = page_of(options.agent)
    if url is None or _cannot_be_sent(options.agent):
        checks += unseen("no page is known")
    elif options.offline:
        checks += unseen("not looked for: --offline")
    else:
        found, status = asyncio.run(_visit(options, url))
        checks += found
    checks += BY_POLITE
    checks.sort(key=lambda check: check.section)
    _print(checks, as_json=options.json)
    if any(check.verdict in (Verdict.WARNING, Verdict.PROBLEM) for check in checks):
        return max(status, Exit.DISALLOWED)
    return status


async def _visit(options: argparse.Namespace, url: str) -> tuple[list[Check], Exit]:
    agent = UserAgent(options.agent)
    fetching = FetchPolicy(timeout=options.timeout, allow_private=options.allow_private)
    try:
        fetched = await fetch(agent, url, fetching, options.resolve)
    except NotFetched as error:
        return [error.check, *unseen("the page was not fetched")], Exit.UNREACHABLE
    return list(check_page(agent, fetched)), Exit.ALLOWED


def unseen(because: str) -> list[Check]:
    """Return what only the page could tell."""
    return [
        Check("2.5", Verdict.YOURS, f"a page with the addresses that the crawler comes from ({because})"),
        Check(
            "2.6",
            Verdict.YOURS,
            f"a page that says how to block it, and what the data is used for ({because})",
        ),
    ]


def _cannot_be_sent(header: str) -> bool:
    try:
        UserAgent(header)
    except InvalidUserAgent:
        return True
    return False


def _print(checks: Iterable[Check], *, as_json: bool) -> None:
    for check in checks:
        text = command_line_text(check.text)
        if as_json:
            print(json.dumps({"practice": check.section, "verdict": check.verdict, "text": text}))
        else:
            print(f"{check.section}  {check.verdict:8} {text}")
