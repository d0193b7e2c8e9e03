"""The hosts that a shared crawl is judged by: addresses, delays, pages and links; and the judge of their servers' log."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Self

from polite.judge.verdict import Expected, Request, Verdict, judge_all

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
    at, host, path, sender = line.split(maxsplit=3)
    return Request(float(at), int(host), path, agent=sender.strip())


def judge(world: World, requests: Iterable[Request]) -> dict[int, Verdict]:
    linked = [f"/p/{page}" for page in range(world.pages)]
    return judge_all(
        range(world.hosts),
        lambda host: Expected(world.required_s(host), pages=linked, tolerance_s=TOLERANCE_S),
        requests,
    )
