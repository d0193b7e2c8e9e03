"""The demo's web without sockets, and hosts that are broken: what each path of a robots fetch answers, and what may be fetched."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

from docs.examples.demo.crawler import HOSTS, MIN_DELAY_S
from polite.judge.server import SiteHandler, Sites
from polite.judge.sites import Quirk
from polite.judge.verdict import Request
from polite.origin import Target
from polite.pacing.scopes import ScopeLimit, Scopes
from polite.robots.exchange import Ask, BodyEnd, Failed, Reply
from polite.robots.reason import Reason

SLOW_S = 0.5
RULES = b"User-agent: *\nDisallow: /no\n"
# Read in a thread, one at a time.
LARGE_RULES = RULES + b"# filler\n" * 3_000
CHANGED_RULES = RULES + b"Disallow: /withdrawn\n" + b"# filler\n" * 3_000
# Rules and URLs about which only a thread decides: what a path may cost counts, and this one costs little.
HOSTILE_RULES = RULES + b"".join(b"Disallow: /*%c*%c*0\n" % pair for pair in product(b"abcdefghij", repeat=2))
LONG = 17_000 * "x"
# The crawl begins at 22:13:20 UTC.
HOURS = b"User-agent: *\nVisit-time: 2230-2345\nDisallow: /no\n"
OPENS_S = 1_000.0
# Seconds for which a site wants to be left alone: beyond the end of what is known near its end.
PAUSE = "10000"
# What polite remembers an address for, at least.
ADDRESS_TTL_S = 60.0
ORIGIN_ALONE = Scopes()
Answer = Reply | Failed | Exception | None


@dataclass(frozen=True)
class Path:
    """One way a robots fetch goes: URLs that may be fetched in the end, URLs that never may, and those that may at first."""

    name: str
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    withdrawn: tuple[str, ...] = ()
    scopes: Scopes = ORIGIN_ALONE
    address_ttl_s: float = 300.0


def _moved(to: str) -> Reply:
    return Reply(301, location=to)


def _answer(url: str, times: int) -> Answer:
    """What the broken hosts answer the n-th time; None is silence."""
    match url.removeprefix("http://"):
        case "broken.test/robots.txt":
            return Reply(500)
        case "nowhere.test/robots.txt":
            return Failed(Reason.DNS_NXDOMAIN)
        case "later.test/robots.txt":
            return Failed(Reason.DNS_TIMEOUT) if times == 1 else Reply(200, RULES)
        case "silent.test/robots.txt":
            return None
        case "cut.test/robots.txt":
            return Reply(200, b"User-agent: *\n", BodyEnd.CUT_SHORT)
        case "raising.test/robots.txt":
            return ValueError("a transport of somebody's own")
        case "loop.test/robots.txt":
            return _moved("/other")
        case "loop.test/other":
            return _moved("/robots.txt")
        case "away.test/robots.txt" | "awry.test/robots.txt" | "astray.test/robots.txt":
            return _moved("http://groups.test/page/1")
        case "large.test/robots.txt" | "larger.test/robots.txt":
            return Reply(200, LARGE_RULES)
        case "changed.test/robots.txt":
            return Reply(200, LARGE_RULES if times == 1 else CHANGED_RULES)
        case "hostile.test/robots.txt":
            return Reply(200, HOSTILE_RULES if times == 1 else HOSTILE_RULES + b"Disallow: /withdrawn\n")
        case "paused.test/robots.txt":
            return Reply(503, retry_after=PAUSE) if times == 2 else Reply(200, RULES)
        case "hours.test/robots.txt":
            return Reply(200, HOURS)
        case "inferred.test/" | "inferred.test/page":
            return Reply(200, b"a page")
        case other if other.startswith(("inferred.test/", "down.test/")):
            return Reply(500)
        case _:
            return Reply(200, b"a page")


_BROKEN = ("broken", "nowhere", "silent", "cut", "raising")
# Beside the demo's: what a lone host of that name may be asked for, and what not.
_MORE = (
    *(Path(name, (), (f"http://{name}.test/page",)) for name in _BROKEN),
    Path("later", ("http://later.test/page",), ("http://later.test/no",)),
    Path("inferred", ("http://inferred.test/page",), ()),
    Path("down", (), ("http://down.test/page",)),
    Path("loop", ("http://loop.test/page",), ()),
    Path("three lead to a fourth", tuple(f"http://{name}.test/page" for name in ("away", "awry", "astray")), ()),
    Path("two at a time", ("http://large.test/page", "http://larger.test/page"), ("http://large.test/no", "http://larger.test/no")),
)  # fmt: skip


def _of_the_demo() -> tuple[Path, ...]:
    """Two pages of each host that may be fetched, and one that may not."""
    paths = []
    for host in HOSTS:
        urls = [f"http://{host.name}{page}" for page in host.pages if page not in host.forbidden]
        # The page that is answered with 429 once.
        first = urls[2:4] if host.quirk is Quirk.LIMITED else urls[:2]
        denied = tuple(f"http://{host.name}{page}" for page in host.forbidden[:1])
        paths.append(Path(host.name, tuple(first), denied))
    return tuple(paths)


PATHS = _of_the_demo() + _MORE
# Whose second answer is another.
CHANGED = Path(
    "changed", ("http://changed.test/page",), ("http://changed.test/no",), ("http://changed.test/withdrawn",)
)
# Closed at first.
CLOSED = Path("hours", ("http://hours.test/page",), ("http://hours.test/no",))
# Two hosts of one address, which rests as well.
ONE_ADDRESS = Path(
    "one address",
    ("http://large.test/page", "http://larger.test/page"),
    ("http://large.test/no",),
    scopes=Scopes(address=ScopeLimit(MIN_DELAY_S)),
)
# Long URLs, by hostile rules; the second answer is another here, too.
HOSTILE = Path(
    "hostile",
    (f"http://hostile.test/page{LONG}", f"http://hostile.test/other{LONG}"),
    (f"http://hostile.test/no{LONG}",),
    (f"http://hostile.test/withdrawn{LONG}",),
)
# Whose turns take longer than an address is known for, so that it is asked for again.
MOVING = replace(
    ONE_ADDRESS,
    name="moving",
    scopes=Scopes(address=ScopeLimit(ADDRESS_TTL_S + 10.0)),
    address_ttl_s=ADDRESS_TTL_S,
)
PAUSED = Path("paused", ("http://paused.test/page",), ("http://paused.test/no",))


class DemoTransport:
    """Answers as the demo's servers do, and the broken hosts beside them. `log`: when each host was asked for what."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._site = SiteHandler(Sites(HOSTS, 80, {host.name: host.name for host in HOSTS}, named=True))
        self._hosts = {host.name: host for host in HOSTS}
        self._times: Counter[str] = Counter()
        self._now = now
        self.log: list[Request] = []
        self.closed = 0

    async def get(self, ask: Ask) -> Reply | Failed:
        """A Transport's one method: takes several steps of the loop."""
        await asyncio.sleep(0)
        answer = self.answer(ask.target)
        if answer is None:
            await asyncio.Event().wait()
        host = self._hosts.get(ask.target.origin.host)
        await asyncio.sleep(SLOW_S if host is not None and host.quirk is Quirk.SLOW else 0)
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer

    def answer(self, target: Target) -> Answer:
        url, name = target.url, target.origin.host
        self._times[url] += 1
        early = name == "hours.test" and target.path != "/robots.txt" and self._now() < OPENS_S
        assert not early, "visited while it was closed"
        host = self._hosts.get(name)
        if host is None:
            answer = _answer(url, self._times[url])
        else:
            said = self._site.respond(host, target.path, self._times[url], self._now())
            assert said.body is None or isinstance(said.body, bytes)
            head = said.headers
            answer = Reply(
                said.status,
                said.body or b"",
                location=head.get("Location"),
                retry_after=head.get("Retry-After"),
            )
        status = answer.status if isinstance(answer, Reply) else 0
        self.log.append(Request(self._now(), name, target.path, status))
        return answer

    async def close(self) -> None:
        self.closed += 1
        await asyncio.sleep(0)


class Names:
    def __init__(self, ttl_s: float) -> None:
        self.closed, self._ttl_s = 0, ttl_s

    async def addresses(self, _: str) -> tuple[tuple[str, ...], float]:
        await asyncio.sleep(0.01)
        return ("192.0.2.1",), self._ttl_s

    async def close(self) -> None:
        self.closed += 1
        await asyncio.sleep(0)
