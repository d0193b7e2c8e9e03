"""Any octets as Robots-Tag and X-Robots-Tag fields and a page: no exception, and more directives never permit more."""

from polite.terms.indexing import Indexing, indexing
from tests.fuzz.deadline import expect, in_time

WORDS = (
    b"noindex", b"noai", b"nofollow", b"none", b"all", b"max-snippet:", b"max-image-preview:large",
    b"unavailable_after: ", b"25 Jun 2010 15:00:00 PST", b"2010-06-25", b"-1", b"a-bot:", b"otherbot:",
    b",", b":", b"\n", b"\0", b'<meta name="robots" content="', b'">', b"<meta name=a-bot content=",
    b"<!--", b"-->", b"<![", b"<script>", b"</script>", b"&#", b"indexifembedded", b"*;", b";", b"=", b"(", b'"', b"\xff\xfe",
)  # fmt: skip
SEEDS = (
    b'noindex\nunavailable_after: Fri, 25 Jun 2010 15:00:00 PST\0<html><meta name="robots" content="nofollow, max-snippet:5">',
    b"a-bot: nofollow, otherbot: noindex\0<!-- <meta name=robots content=none> --><meta content=noarchive name=A-BOT>",
)
AGENTS = "*", "a-bot"
_SWITCHES = (
    *("index", "follow", "archive", "snippet", "translate", "image_index", "ai", "image_ai"),
    "sitelinks_searchbox",
)
_LIMITS = ("unavailable_after", "max_snippet", "max_image_preview", "max_video_preview")


def one_input(data: bytes) -> None:
    """Input: one field per line up to a NUL, then the page."""
    head, _, page = data.partition(b"\0")
    lines = head.decode("latin-1").split("\n")
    fields = [("Robots-Tag" if ";" in line else "X-Robots-Tag", line) for line in lines]
    for agent in AGENTS:
        with in_time(data):
            by_head, by_page = indexing(fields, agent=agent), indexing((), page, agent=agent)
            both = indexing(fields, page, agent=agent)
        expect(both == by_head | by_page, "fields and page together differ from both", both, by_head, by_page)
        expect(both | both == both, "the same directives twice change the result", both)
        for one in (by_head, by_page):
            _check_stricter(both, one)
    _check_stricter(indexing(fields, page, agent="a-bot"), indexing(fields, page))


def _check_stricter(strict: Indexing, loose: Indexing) -> None:
    for name in _SWITCHES:
        permits = getattr(strict, name) and not getattr(loose, name)
        expect(not permits, f"{name} is permitted by more directives", strict, loose)
    for name in _LIMITS:
        limit, other = getattr(strict, name), getattr(loose, name)
        lower = other is None or (limit is not None and limit <= other)
        expect(lower, f"{name} is raised by more directives", strict, loose)
    expect(strict.max_snippet is None or strict.max_snippet >= 0, "max_snippet is negative", strict)
