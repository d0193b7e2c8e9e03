"""Any octets as a Location field: a canonical URL, or the end; always the end after the last permitted redirect."""

import re

from polite.errors import InvalidURL
from polite.origin import Origin, Target
from polite.robots.exchange import DEFAULT_SCHEMES, Exchange, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.result import Unavailable, Unreachable
from tests.fuzz.deadline import expect, in_time

WORDS = (
    b"http://", b"https://", b"ftp://", b"file:", b"javascript:", b"data:", b"//", b"\\\\", b"/", b"..",
    b"%2e", b"@", b"user:secret@", b":80", b":65536", b"[::1]", b"127.1", b"0x7f.1", b"xn--", b"%0d%0a",
    b"\r\n", b"\t", b"?", b"#", b"\xc3\xbc", b"\xff", b" ", b"a.test",
)  # fmt: skip
SEEDS = (
    b"\0/other",
    b"\x01https://user:secret@b.test:8443/a?b#c",
    b"\x02//[::ffff:127.0.0.1]/%2e%2e/x",
    b"\0\\\\b.test\\a",
)
STARTS = tuple(map(Origin.of, ("https://a.test", "http://a.test:8080", "ftp://a.test")))
MOST_HOPS = FetchPolicy().max_redirects
_SENDABLE = re.compile(r"[!-~]+")
_OPTIONS = FetchPolicy(), FetchPolicy(allow_downgrade=False)


def one_input(data: bytes) -> None:
    """Input: one octet for the start, then the field, which is repeated with a number at each redirect."""
    if not data:
        return
    location = data[1:].decode("utf-8", "surrogateescape")
    fetching = _OPTIONS[data[0] // 128]
    step = Exchange.begin(STARTS[data[0] % len(STARTS)], None, fetching)
    hops = 0
    with in_time(data):
        while isinstance(step, Exchange) and hops <= MOST_HOPS + 1:
            _check(step, fetching)
            step = step.next(Reply(301, location=location + ("" if hops == 0 else f"{hops}")))
            hops += 1
    expect(isinstance(step, Unreachable | Unavailable), "endless redirects", step)
    expect(step.hops <= MOST_HOPS, "too many hops", step)
    if isinstance(step, Unreachable):
        short = step.detail.isprintable() and len(step.detail) < 1_000
        expect(short, "the detail is not printable, or too long", step.detail)
    _check_alone(data[1:])


def _check(step: Exchange, fetching: FetchPolicy) -> None:
    target = step.ask.target
    expect(_SENDABLE.fullmatch(target.url) and "#" not in target.url, "the URL cannot be sent", target.url)
    expect("@" not in target.url.split("/")[2], "credentials are sent", target.url)
    expect(target.origin.scheme in DEFAULT_SCHEMES, "the scheme has no transport", target.url)
    expect(Target.of(target.url) == target, "not canonical", target.url, Target.of(target.url))
    first = step.visited[0]
    secure = first.startswith("https:") and not fetching.allow_downgrade
    expect(not secure or target.url.startswith("https:"), "downgraded", first, target.url)


def _check_alone(field: bytes) -> None:
    """Check the octets as a URL: refused, or canonical."""
    try:
        target = Target.of(field.decode("latin-1"))
    except InvalidURL:
        return
    expect(Target.of(target.url) == target, "not canonical", target.url, Target.of(target.url))
