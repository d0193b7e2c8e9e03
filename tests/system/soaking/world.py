"""A thousand origins on loopback: how each of them answers, and what it asks for."""

from enum import Enum, auto

ORIGINS = 1_000
MIN_DELAY_S = 5.0
CRAWL_DELAY_S = 8
RETRY_AFTER_S = 9
SLOW_S = 1.5
# How long a robots.txt is good for, so that each is asked for again and again.
TTL_S = 60.0
PAGES = 10


class Kind(Enum):
    """One in twenty origins each, and the rest GOOD."""

    GOOD = auto()
    DROPS_PAGES = auto()
    MISSING = auto()
    BUSY = auto()
    LIMITED = auto()
    SLOW = auto()
    DROPS_ROBOTS = auto()
    GARBAGE = auto()
    MOVED = auto()
    HUGE = auto()
    CUT_SHORT = auto()
    DELAYED = auto()


_KINDS = [*list(Kind)[1:], *[Kind.GOOD] * 9]
# Their robots.txt cannot be had: nothing of theirs may be fetched.
CLOSED = frozenset({Kind.BUSY, Kind.DROPS_ROBOTS, Kind.GARBAGE, Kind.CUT_SHORT})
MOVED_TO, FORBIDDEN = "/rules", "/private/x"
RULES = b"User-agent: *\nDisallow: /private\n"
BODIES = {
    Kind.HUGE: RULES + b"# filler\n" * 60_000,
    Kind.DELAYED: RULES + b"Crawl-delay: %d\n" % CRAWL_DELAY_S,
}


def kind(number: int) -> Kind:
    return _KINDS[number % len(_KINDS)]


def name(number: int) -> str:
    return f"h{number}.test"


def forbids(number: int, path: str) -> bool:
    """Whether the origin's robots.txt, or the want of one, forbids a page."""
    what = kind(number)
    return what in CLOSED or (path.startswith("/private") and what is not Kind.MISSING)
