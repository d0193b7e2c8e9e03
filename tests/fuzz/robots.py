"""Any octets as a robots.txt: parse, decide, lint and serialize, without an exception and in bounded time."""

from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.lint.lint import lint
from polite.robots.parse import Robots, parse
from tests.fuzz.deadline import in_time

DIALECTS = (RFC9309, GOOGLE, GOOGLE_2019, GOOGLE_2010, CLASSIC)
AGENT = "a-b"

# The dictionary for mutations, and the first inputs.
WORDS = (
    b"user-agent:", b"disallow:", b"allow:", b"sitemap:", b"crawl-delay:", b"request-rate:", b"host:", b"content-usage:",
    b"content-signal:", b"train-ai=n", b"search=yes", b"useragent ", b"disallow ", b"index.html", b"*", b"$", b"%2A", b"%24",
    b"%61", b"%C3%BC", b"\xc3\xbc", b"\xff", b"\xef\xbb\xbf", b"\0", b"\r\n", b"\n\n", b" # ", b"https://",
)  # fmt: skip
SEEDS = (
    b"\0\x08/a/b?c=d\nUser-agent: *\nDisallow: /a\nAllow: /a/b\nCrawl-delay: 1\n\nUser-agent: a-b\nDisallow: /*c$\n",
    b"\x01\x03/%61\n\xef\xbb\xbfuseragent a\r\ndissallow /%61\rallow: /index.html\nuser-agent:*\ndisallow:/\n",
    b"\x04\x02/x\nuser-agent: a\n\n# c\n\nuser-agent: b\ndisallow: *\ncontent-usage: /x train-ai=n, search=y\n",
)


def one_input(data: bytes) -> None:
    """Input: one octet for the dialect, one for the length of the path, then path and file.

    Raises AssertionError if two results differ, or if one took too long.
    """
    if len(data) < 2:
        return
    dialect, length = DIALECTS[data[0] % len(DIALECTS)], data[1]
    path, body = "/" + data[2 : 2 + length].decode("utf-8", "surrogateescape"), data[2 + length :]
    with in_time(data):
        _check(parse(body, dialect), body, dialect, path)


def _check(robots: Robots, body: bytes, dialect: Dialect, path: str) -> None:
    decision, rules = robots.decide(AGENT, path), robots.rules_for(AGENT)
    _same("allows and decide", rules.allows(path), decision.allowed)
    if decision.rule is not None:
        _same("a decision and its rule", decision.rule.allows, decision.allowed)
    if not str(decision) or decision.rule in decision.overruled:
        raise AssertionError(f"{decision!r} overrules itself")
    again = parse(robots.to_text(), dialect)
    _same("a file and its text", again.decide(AGENT, path).allowed, decision.allowed)
    _same("a text and its text", again.to_text(), robots.to_text())
    _same("a file and its compact form", Robots.from_bytes(robots.to_bytes()).groups, robots.groups)
    _same("signals", again.signals(AGENT, path), robots.signals(AGENT, path))
    lines = 1 + body.count(b"\n") + body.count(b"\r")
    for finding in lint(body, dialect):
        if not 1 <= finding.line <= lines:
            raise AssertionError(f"{finding} has no line from 1 to {lines}")


def _same(what: str, one: object, other: object) -> None:
    if one != other:
        raise AssertionError(f"{what} differ: {one!r} and {other!r}")
