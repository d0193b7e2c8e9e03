"""The demo's sixteen hosts: pages, robots.txt as real sites write them, and what each host disallows."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypedDict

from docs.examples.demo.judge import ROBOTS, Expected, Request, Verdict, judge_all
from polite.pacing.policy import PacingPolicy
from polite.robots.policy import FetchPolicy, RobotsPolicy

AGENT = "PoliteDemo/1.0 (+https://polite.test/demo)"
MIN_DELAY_S = 0.3
RETRY_AFTER_S = 2
# The least delay after a server error, in seconds.
BUSY_BACK_OFF_S = 1.0
# Redirects to a host's robots.txt go through `/hop/<host>/<number>`. The first host serves those with the number HOP_ASIDE.
HOP = "/hop/"
HOP_ASIDE = 3


class Policies(TypedDict):
    """The options of open_gate that the demo sets."""

    fetching: FetchPolicy
    robots: RobotsPolicy
    pacing: PacingPolicy


def policies(nameserver: str) -> Policies:
    """Return how the demo crawls, with names resolved by this server."""
    return Policies(
        fetching=FetchPolicy(allowed_networks=["127.0.0.0/8"], nameservers=[nameserver], timeout=10),
        robots=RobotsPolicy(retry_min=BUSY_BACK_OFF_S),
        pacing=PacingPolicy(min_delay=MIN_DELAY_S, backoff=BUSY_BACK_OFF_S),
    )


class Quirk(Enum):
    """A host's unusual behaviour."""

    NONE = auto()
    MISSING = auto()
    FORBIDDEN = auto()
    BUSY_TWICE = auto()
    HOPS = auto()
    LIMITED = auto()
    SLOW = auto()


@dataclass(frozen=True, slots=True)
class Host:
    """One virtual host.

    Attributes:
        forbidden: pages that the rules disallow, listed by hand, since the judge parses no robots.txt.
    """

    name: str
    robots: bytes
    pages: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    delay_s: float = MIN_DELAY_S
    quirk: Quirk = Quirk.NONE
    hops: int = 0
    note: str = ""


def _pages(*more: str, count: int = 6) -> tuple[str, ...]:
    return ("/", *(f"/page/{n}" for n in range(1, count)), *more)


_GROUPS = b"""\
# Three groups for different crawlers; ours is the second.
User-agent: OtherBot
User-agent: AnotherBot
Disallow: /

User-agent: politedemo
User-agent: FriendlyBot/2.0
Disallow: /members
Allow: /members/join
Disallow: /drafts/

User-agent: *
Disallow: /page/
Sitemap: http://groups.test/sitemap.xml
"""

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

HOSTS: tuple[Host, ...] = (
    Host(
        "groups.test",
        _GROUPS,
        _pages("/members", "/members/join", "/drafts/1"),
        ("/members", "/drafts/1"),
        note="several groups; the one that names the crawler applies",
    ),
    Host(
        "shop.test",
        _WILDCARDS,
        _pages("/list?sort=up", "/price.pdf", "/price.pdf?v=2", "/cart", "/cart/help", "/about/private/x"),
        ("/list?sort=up", "/price.pdf", "/cart", "/about/private/x"),
        note="wildcards and $",
    ),
    Host(
        "delay.test",
        b"User-agent: *\nCrawl-delay: 1\nDisallow: /admin\n",
        _pages("/admin"),
        ("/admin",),
        delay_s=1.0,
        note="Crawl-delay: 1",
    ),
    Host(
        "half.test",
        b"User-agent: *\r\nDisallow: /trash/\r\nCrawl-delay: 0.5\r\n",
        _pages("/trash/x"),
        ("/trash/x",),
        delay_s=0.5,
        note="Crawl-delay: 0.5, CR LF",
    ),
    Host("mac.test", b"User-agent: *\rDisallow: /old\r", _pages("/old/1"), ("/old/1",), note="CR line ends"),
    Host(
        "bom.test",
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /x\n",
        _pages("/x/1"),
        ("/x/1",),
        note="a byte order mark",
    ),
    Host("html.test", _HTML, _pages(), note="an HTML page instead of rules"),
    Host(
        "xn--mller-kva.test",
        "User-agent: *\nDisallow: /käse\n".encode(),
        _pages("/k%C3%A4se/1", "/kase"),
        ("/k%C3%A4se/1",),
        note="müller.test, rules in UTF-8",
    ),
    Host(
        "five.test",
        b"User-agent: *\nDisallow: /no\n",
        _pages("/no/1"),
        ("/no/1",),
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
        ("/no/1",),
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
        ("/deep/1",),
        quirk=Quirk.SLOW,
        note="responds after 0.5 s",
    ),
    Host("huge.test", _HUGE, _pages("/secret"), ("/secret",), note="a body beyond the size limit"),
)


def is_page(request: Request) -> bool:
    """Whether a request is neither for robots.txt nor for a redirect to one."""
    return request.path != ROBOTS and not request.path.startswith(HOP)


def _back_off_s(status: int) -> float:
    """Return the back-off that a response requires. In the demo a 429 carries a Retry-After."""
    if status == 429:
        return RETRY_AFTER_S
    return BUSY_BACK_OFF_S if status >= 500 else 0.0


def expected(host: Host) -> Expected:
    """Return what a host requires of a crawl."""
    hops = [f"{HOP}{each.name}/{number}" for each in HOSTS for number in range(1, each.hops + 1)]
    return Expected(
        MIN_DELAY_S,
        host.delay_s,
        _back_off_s,
        lambda path: path in host.forbidden,
        host.pages,
        rules=(ROBOTS, *(hop for hop in hops if hop.startswith(f"{HOP}{host.name}/"))),
        aside=hops,
    )


def judge_hosts(requests: Iterable[Request]) -> dict[Host, Verdict]:
    """Judge the log of all hosts, in the order of HOSTS."""
    by_name = {host.name: host for host in HOSTS}
    verdicts = judge_all(by_name, lambda name: expected(by_name[name]), requests)
    return {by_name[name]: verdict for name, verdict in verdicts.items()}
