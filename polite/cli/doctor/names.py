"""Checks of a User-Agent header: does it name the crawler, as RFC 9309 and the best practices want it?"""

import re
from collections.abc import Iterator

from polite.cli.doctor.check import Check, Verdict
from polite.errors import InvalidURL, InvalidUserAgent, redact_url
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.signing.card import product_token

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
