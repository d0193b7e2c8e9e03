"""The hosts that a shared crawl is judged by: addresses, delays, pages and links; and the judge of their servers' log."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from statistics import mean
from typing import Self

from docs.examples.demo.judge import Expected, Request
from docs.examples.demo.judge import judge as judge_host

# A gap is short if it is below the delay by more than this.
TOLERANCE_S = 0.001


@dataclass(frozen=True, slots=True)
class World:
    """Hosts on loopback, and what a crawl of them is told. Known to servers, crawlers and the judge.

    Attributes:
        delay_s: The Crawl-delay of every second host.
        lease_s: The lease of a process's session in the store.
        network: The second octet of all addresses, so that two worlds at one time do not meet.
    """

    hosts: int = 60
    pages: int = 40
    delay_s: float = 0.5
    lease_s: float = 6.0
    network: int = 77

    @classmethod
    def read(cls, text: str) -> Self:
        return cls(**json.loads(text))

    def written(self) -> str:
        return json.dumps(asdict(self))

    @property
    def policy_delay_s(self) -> float:
        """The crawler's own delay. It is less than a Crawl-delay, so that a Crawl-delay that is not handed over shows."""
        return 0.8 * self.delay_s

    def required_s(self, host: int) -> float:
        return self.delay_s if host % 2 else self.policy_delay_s

    def robots(self, host: int) -> bytes:
        delay = b"Crawl-delay: %s\n" % str(self.delay_s).encode() if host % 2 else b""
        return b"User-agent: *\nDisallow: /private/\n" + delay

    def address(self, host: int) -> str:
        return f"127.{self.network}.{host // 250}.{host % 250 + 1}"

    def url(self, host: int, page: int, port: int) -> str:
        return f"http://{self.address(host)}:{port}/p/{page}"

    def seeds(self, port: int) -> list[str]:
        return [self.url(host, 0, port) for host in range(self.hosts)]

    def links(self, host: int, page: int) -> list[tuple[int, int]]:
        """Return the (host, page) that a page links to: a tree on its own host, and pages that others link to as well."""
        own = {2 * page + 1, 2 * page + 2, page + 1, 0} - {page}
        elsewhere = (7 * page + host) % self.pages
        return [
            *((host, each) for each in sorted(own) if each < self.pages),
            ((host + 1) % self.hosts, elsewhere),
            ((host + 17) % self.hosts, elsewhere),
        ]

    @property
    def ideal_s(self) -> float:
        """How long a perfect crawl takes: the time of the slowest host, whose pages all come at its delay."""
        return max(self.pages * self.required_s(host) for host in range(min(2, self.hosts)))

    @property
    def longest_silence_s(self) -> float:
        """How long the hosts of a killed process may see no request: lease, beat and delay, and half a second."""
        return self.lease_s * (1 + 1 / 6) + self.delay_s + 0.5


def read_request(line: str) -> Request:
    """Read a line of the servers' log."""
    at, host, path, sender = line.split(maxsplit=3)
    return Request(float(at), int(host), path, sender=sender.strip())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the log of one crawl says.

    Attributes:
        gaps: How many gaps were judged.
        short: Each gap that was too short, in words.
        shortfall_s: By how much the worst of them was too short.
        lost: Pages that were never requested.
        twice: Pages that were requested more than once, counted once for each further time.
        robots: The most requests for robots.txt that one host got.
        before_rules: Pages that were requested before their host's robots.txt.
        forbidden: Paths that are disallowed, or that no page links to.
        silence_s: The longest gap of any host.
        efficiency: The ideal time divided by the real one, from the first request to the last.
        per_host: The mean over all hosts, each from its own first request to its last.
    """

    requests: int = 0
    gaps: int = 0
    short: list[str] = field(default_factory=list)
    shortfall_s: float = 0.0
    lost: int = 0
    twice: int = 0
    robots: int = 0
    before_rules: int = 0
    forbidden: int = 0
    silence_s: float = 0.0
    efficiency: float = 0.0
    per_host: float = 0.0


def judge(world: World, requests: Iterable[Request]) -> Verdict:
    """Judge the crawl of all hosts of a world."""
    by_host: dict[str | int, list[Request]] = defaultdict(list)
    for request in requests:
        by_host[request.host].append(request)
    linked = [f"/p/{page}" for page in range(world.pages)]
    hosts = {
        host: judge_host(
            Expected(world.required_s(host), pages=linked, tolerance_s=TOLERANCE_S), by_host[host]
        )
        for host in range(world.hosts)
    }
    arrivals = [each.at for verdict in hosts.values() for each in verdict.requests]
    took_s = max(arrivals) - min(arrivals) if arrivals else 0.0
    ideal_s = {host: world.pages * world.required_s(host) for host in hosts}
    return Verdict(
        requests=len(arrivals),
        gaps=sum(len(each.gaps) for each in hosts.values()),
        short=[f"host {host}: {words}" for host, each in hosts.items() for words in each.short],
        shortfall_s=max(each.shortfall_s for each in hosts.values()),
        lost=sum(len(each.missing) for each in hosts.values()),
        twice=sum(
            times - 1
            for each in hosts.values()
            for path, times in each.pages.items()
            if path not in each.unwanted
        ),
        robots=max(each.robots for each in hosts.values()),
        before_rules=sum(len(each.early) for each in hosts.values()),
        forbidden=sum(len(each.unwanted) for each in hosts.values()),
        silence_s=max((gap for each in hosts.values() for gap in each.gaps), default=0.0),
        efficiency=world.ideal_s / took_s if took_s else 0.0,
        per_host=mean(
            min(1.0, ideal_s[host] / sum(each.gaps)) if each.gaps else 0.0 for host, each in hosts.items()
        ),
    )
