"""RobotFileParser: the interface of urllib.robotparser, on polite's rules; what differs is in docs/how-to/replace-protego.md."""

import asyncio
import time
from collections.abc import Iterable
from typing import NamedTuple

from polite.compose import open_gate
from polite.errors import redact_url
from polite.integrations import lenient
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.fetching.result import FetchResult, Found, Unavailable
from polite.robots.parse import Robots, parse
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.version import __version__

_AGENT = f"polite-robotparser/{__version__}"


class RequestRate(NamedTuple):
    """So many requests in so many seconds."""

    requests: int
    seconds: int


class RobotFileParser:
    """One site's robots.txt. Until it has been read nothing may be fetched.

    `agent` is the User-Agent that `read` asks with, `fetching` its limits, `dialect` how the file is read. `robots` is what polite
    knows of the file. `allow_all` and `disallow_all` are what an answer without a file means, and may be set.
    """

    def __init__(
        self,
        url: str = "",
        *,
        agent: str | UserAgent = _AGENT,
        fetching: FetchPolicy | None = None,
        dialect: Dialect = RFC9309,
    ) -> None:
        self.robots: Robots = parse("", dialect)
        self.allow_all = False
        self.disallow_all = False
        self.last_checked = 0.0
        self._agent = agent
        self._fetching = fetching
        self._dialect = dialect
        self.set_url(url)

    def set_url(self, url: str) -> None:
        """The URL of the file; of it the origin counts, since rules for it are at its /robots.txt and nowhere else (L1)."""
        self.url = url

    def mtime(self) -> float:
        """When it was last read: wall seconds, 0 for never."""
        return self.last_checked

    def modified(self) -> None:
        """Say that it was read just now."""
        self.last_checked = time.time()

    def read(self) -> None:
        """Fetch the file as a gate does: bounded in time, size and redirects, never from private addresses unless told so.

        No file means that all is allowed, a failure that nothing is (RFC 9309, 2.3.1). Waits, so that inside an event loop it
        raises RuntimeError: await a gate there. Raises InvalidURL.
        """
        target = Target.of(self.url)
        if _in_a_loop():
            raise RuntimeError(
                f"read() of {redact_url(self.url)} would hold up the event loop: await polite.Gate.check there instead"
            )
        access = asyncio.run(self._fetched(target))
        self.allow_all = isinstance(access, Unavailable)
        self.disallow_all = not isinstance(access, Found | Unavailable)
        self.robots = parse(access.body if isinstance(access, Found) else "", self._dialect)
        self.modified()

    async def _fetched(self, target: Target) -> FetchResult:
        policy = RobotsPolicy(dialect=self._dialect)
        async with open_gate(self._agent, robots=policy, fetching=self._fetching) as gate:
            return (await gate.explain(target.url)).snapshot.access

    def parse(self, lines: Iterable[str]) -> None:
        """Read a file from its lines, with their line ends or without; one text is the whole file. Never raises on content."""
        self.robots = parse(lines if isinstance(lines, str) else "\n".join(lines), self._dialect)
        self.modified()

    def can_fetch(self, useragent: str, url: str) -> bool:
        """Whether the agent may fetch the URL. Never raises: what is no URL may not be fetched."""
        if self.disallow_all:
            return False
        if self.allow_all:
            return True
        return bool(self.last_checked) and lenient.allows(self.robots, useragent, url)

    def crawl_delay(self, useragent: str) -> float | None:
        """Seconds, or None."""
        return lenient.rules_for(self.robots, useragent).crawl_delay if self.last_checked else None

    def request_rate(self, useragent: str) -> RequestRate | None:
        """The rate, or None; a window of time is left out, as in the original."""
        rate = lenient.rules_for(self.robots, useragent).request_rate if self.last_checked else None
        return None if rate is None else RequestRate(rate.requests, int(rate.seconds))

    def site_maps(self) -> list[str] | None:
        """The absolute URLs of the Sitemap lines; None when there are none."""
        return list(self.robots.sitemaps) or None

    def __str__(self) -> str:
        """The file, tidied."""
        # Lone surrogates, as a text at a limit may hold, can be printed nowhere.
        return self.robots.to_text().encode("utf-8", "backslashreplace").decode().rstrip("\n")


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
