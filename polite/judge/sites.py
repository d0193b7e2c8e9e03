"""The practice sites: pages, robots.txt as real sites write them, and what each site disallows.

The judge parses no robots.txt: what the rules disallow is written by hand, as a regular expression.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from polite.judge.verdict import ROBOTS, Expected, Request, Verdict, judge_all

RETRY_AFTER_S = 2
# The Retry-After of a robots.txt that fails for a while, and of one that always does.
BUSY_S = 1
DOWN_S = 120
# The Retry-After of PRACTICE's /search, to which no page links.
SEARCH_S = 60
# Redirects to a host's robots.txt go through `/hop/<host>/<number>`. The site HOP_HOST serves those with the number HOP_ASIDE.
HOP = "/hop/"
HOP_ASIDE = 3
HOP_HOST = "groups.test"


class Quirk(Enum):
    """A site's unusual behaviour.

    Attributes:
        NONE: it has none.
        PRACTICE: it has a sitemap, a page /search that answers 429, and pages with an ETag.
        DOWN: its robots.txt always answers 503.
        MISSING: it has no robots.txt (404).
        FORBIDDEN: its robots.txt answers 403.
        BUSY_TWICE: its robots.txt answers 503 twice, then as it should.
        HOPS: redirects lead to its robots.txt.
        LIMITED: one page answers 429 the first time, and then all do, until the Retry-After has passed.
        SLOW: it answers after half a second.
    """

    NONE = auto()
    PRACTICE = auto()
    DOWN = auto()
    MISSING = auto()
    FORBIDDEN = auto()
    BUSY_TWICE = auto()
    HOPS = auto()
    LIMITED = auto()
    SLOW = auto()


@dataclass(frozen=True, slots=True)
class Host:
    """One site.

    Attributes:
        name: its name, which only a DNS server of tests knows.
        robots: its robots.txt.
        pages: the pages that links lead to.
        quirk: its unusual behaviour.
        note: what is special about it, in words.
        disallowed: what the rules disallow: a regular expression for the start of canonical paths. Empty: nothing.
        delay_s: the delay that robots.txt states, in seconds.
        hops: the number of redirects to robots.txt.
        moved: pages that redirect, with the host and the path of where to.
        texts: the text of pages that have one instead of links.
    """

    name: str
    robots: bytes
    pages: tuple[str, ...]
    disallowed: str = ""
    delay_s: float = 0.0
    quirk: Quirk = Quirk.NONE
    hops: int = 0
    note: str = ""
    moved: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)
    texts: Mapping[str, str] = field(default_factory=dict, hash=False)

    def disallows(self, path: str) -> bool:
        """Return whether the rules disallow a canonical path."""
        return bool(self.disallowed) and re.match(self.disallowed, path) is not None

    @property
    def forbidden(self) -> list[str]:
        """The pages that the rules disallow."""
        return [path for path in self.pages if self.disallows(path)]


def _pages(more: str = "") -> tuple[str, ...]:
    return ("/", *(f"/page/{n}" for n in range(1, 6)), *more.split())


# Groups of other crawlers, and two for all, which count as one; or a group that names the crawler.
_OTHERS = "User-agent: OtherBot\nUser-agent: AnotherBot\nDisallow: /\n\n"
_RULES = "Disallow: /members\nAllow: /members/join\n", "Disallow: /drafts/\n"
_FOR_ALL = "User-agent: *\n{}\nUser-agent: ThirdBot\nDisallow: /page/\n\nUser-agent: *\n{}".format(*_RULES)
_FOR_ONE = "User-agent: {}\nUser-agent: FriendlyBot/2.0\n{}{}\nUser-agent: *\nDisallow: /page/\n"

_WILDCARDS = b"""\
User-agent: *
Disallow: /*?sort=
Disallow: /*.pdf$
Disallow: /cart
Allow: /cart/help$
Disallow: /a*/private/
"""

_HTML = b"""<!doctype html><html><head><title>Welcome: a page for everything</title></head>
<body><p>User-agent is a word that this page knows: Disallow is another.</p></body></html>
"""

# Rules, comments up to the limit of 512,000 octets, and a rule beyond the limit, which does not count.
_HUGE_HEAD = b"User-agent: *\nDisallow: /secret\n"
_HUGE = (
    _HUGE_HEAD
    + b"# filler\n" * ((512_000 - len(_HUGE_HEAD)) // 9 + 1)
    + b"Disallow: /page\n"
    + b"# more\n" * 50_000
)

PRACTICE = Host(
    "practice.test",
    b"User-agent: *\nDisallow: /private/\nAllow: /private/press\nCrawl-delay: 2\n",
    ("/", "/about", "/private/diary", "/private/press"),
    "/private/(?!press)",
    delay_s=2.0,
    quirk=Quirk.PRACTICE,
    note="Crawl-delay: 2, Allow in Disallow",
    texts={"/about": "About this site", "/private/diary": "Diary", "/private/press": "Press"},
)
DOWN = Host("down.test", b"", (), quirk=Quirk.DOWN, note="robots.txt always 503")

HOSTS: tuple[Host, ...] = (
    Host(
        HOP_HOST,
        (_OTHERS + _FOR_ALL).encode(),
        _pages("/members /members/join /drafts/1 /join /login"),
        "/members(?!/join)|/drafts/",
        note="several groups; pages that redirect",
        moved={"/join": (HOP_HOST, "/members/join"), "/login": (HOP_HOST, "/members")},
    ),
    Host(
        "shop.test",
        _WILDCARDS,
        _pages("/list?sort=up /price.pdf /price.pdf?v=2 /cart /cart/help /about/private/x /partner"),
        r".*\?sort=|.*\.pdf$|/cart(?!/help$)|/a.*/private/",
        note="wildcards and $; a page that redirects to another host",
        moved={"/partner": ("slow.test", "/deep/1")},
    ),
    Host(
        "delay.test",
        b"User-agent: *\nCrawl-delay: 1\nDisallow: /admin\n",
        _pages("/admin"),
        "/admin",
        delay_s=1.0,
        note="Crawl-delay: 1",
    ),
    Host(
        "half.test",
        b"User-agent: *\r\nDisallow: /trash/\r\nCrawl-delay: 0.5\r\n",
        _pages("/trash/x"),
        "/trash/",
        delay_s=0.5,
        note="Crawl-delay: 0.5, CR LF",
    ),
    Host("mac.test", b"User-agent: *\rDisallow: /old\r", _pages("/old/1"), "/old", note="CR line ends"),
    Host(
        "bom.test",
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /x\n",
        _pages("/x/1"),
        "/x",
        note="a byte order mark",
    ),
    Host("html.test", _HTML, _pages(), note="an HTML page instead of rules"),
    Host(
        "xn--mller-kva.test",
        "User-agent: *\nDisallow: /käse\n".encode(),
        _pages("/k%C3%A4se/1 /kase"),
        "/k%C3%A4se",
        note="müller.test, rules in UTF-8",
    ),
    Host(
        "five.test",
        b"User-agent: *\nDisallow: /no\n",
        _pages("/no/1"),
        "/no",
        quirk=Quirk.HOPS,
        hops=5,
        note="robots.txt after five redirects",
    ),
    Host(
        "six.test",
        b"User-agent: *\nDisallow: /\n",
        _pages(),
        quirk=Quirk.HOPS,
        hops=6,
        note="six redirects: no robots.txt",
    ),
    Host("missing.test", b"", _pages(), quirk=Quirk.MISSING, note="404: no restriction"),
    Host("locked.test", b"", _pages(), quirk=Quirk.FORBIDDEN, note="403: no restriction"),
    Host(
        "busy.test",
        b"User-agent: *\nDisallow: /no\n",
        _pages("/no/1"),
        "/no",
        quirk=Quirk.BUSY_TWICE,
        note="503 twice, then rules",
    ),
    Host(
        "limited.test", b"", _pages(), quirk=Quirk.LIMITED, note=f"one 429 with Retry-After: {RETRY_AFTER_S}"
    ),
    Host(
        "slow.test",
        b"User-agent: *\nDisallow: /deep\n",
        _pages("/deep/1"),
        "/deep",
        quirk=Quirk.SLOW,
        note="responds after 0.5 s",
    ),
    Host("huge.test", _HUGE, _pages("/secret"), "/secret", note="a body beyond the size limit"),
)


def practice_sites(token: str = "") -> tuple[Host, ...]:
    """Return all sites.

    Args:
        token: A crawler's product token: one site gets a group of rules for it.
    """
    if not token:
        return (PRACTICE, DOWN, *HOSTS)
    named = replace(HOSTS[0], robots=(_OTHERS + _FOR_ONE.format(token, *_RULES)).encode())
    return (PRACTICE, DOWN, named, *HOSTS[1:])


def is_page(request: Request) -> bool:
    """Whether a request is neither for robots.txt nor for a redirect to one."""
    return request.path != ROBOTS and not request.path.startswith(HOP)


def expected(host: Host, delay_s: float, *, tolerance_s: float = 0.0) -> Expected:
    """Return what a host requires of a crawl that has a delay of its own, in seconds."""
    hops = [f"{HOP}{each.name}/{number}" for each in HOSTS for number in range(1, each.hops + 1)]
    return Expected(
        delay_s,
        host.delay_s,
        disallows=host.disallows,
        pages=host.pages,
        rules=(ROBOTS, *(hop for hop in hops if hop.startswith(f"{HOP}{host.name}/"))),
        aside=hops,
        tolerance_s=tolerance_s,
    )


def judge_hosts(
    hosts: Iterable[Host], requests: Iterable[Request], delay_s: float, *, tolerance_s: float = 0.0
) -> dict[Host, Verdict]:
    """Judge the log of the hosts, in their order."""
    by_name = {host.name: host for host in hosts}
    verdicts = judge_all(
        by_name, lambda name: expected(by_name[name], delay_s, tolerance_s=tolerance_s), requests
    )
    return {by_name[name]: verdict for name, verdict in verdicts.items()}
