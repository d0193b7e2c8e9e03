"""RobotFileParser: the interface of urllib.robotparser on polite's rules. See docs/how-to/replace-protego.md."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from polite import blocking
from polite.integrations.protego import _allows, _rules_for
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.parse import Robots, parse
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.robots.result import Found, Unavailable
from polite.version import __version__

_AGENT = f"polite-robotparser/{__version__}"

ROBOTPARSER = replace(RFC9309, name="robotparser", reserved_equal_escapes=True)
"""RFC9309 with the comparison of urllib, which decodes every escape of rules and URLs. Pass RFC9309 for a strict reading."""


class RequestRate(NamedTuple):
    """A number of requests per number of seconds.

    Attributes:
        requests: The number of requests.
        seconds: The number of seconds.
    """

    requests: int
    seconds: int


class RobotFileParser:
    """One site's robots.txt. Nothing may be fetched until it has been read.

    Args:
        url: a URL of the site.
        agent: the User-Agent that `read` sends.
        fetching: the limits for `read`.
        dialect: how to parse the file.

    Attributes:
        robots: the file as polite parsed it.
        allow_all: the site has no robots.txt. May be set.
        disallow_all: robots.txt is unreachable. May be set.
        last_checked: the Unix time of the last read or parse; 0 for never.
    """

    def __init__(
        self,
        url: str = "",
        *,
        agent: str | UserAgent = _AGENT,
        fetching: FetchPolicy | None = None,
        dialect: Dialect = ROBOTPARSER,
    ) -> None:
        self.robots: Robots = parse("", dialect)
        self.allow_all: bool = False
        self.disallow_all: bool = False
        self.last_checked: float = 0.0
        self._agent = agent
        self._fetching = fetching
        self._dialect = dialect
        self.set_url(url)

    def set_url(self, url: str) -> None:
        """Set a URL of the site. Only its origin matters, since rules are only at /robots.txt (L1)."""
        self.url = url

    def mtime(self) -> float:
        """Return the Unix time of the last read or parse; 0 for never."""
        return self.last_checked

    def modified(self) -> None:
        """Set the time of the last read to now."""
        self.last_checked = time.time()

    def read(self) -> None:
        """Fetch the file as a gate does, with limits on time, size and redirects, and without private addresses by default.

        If there is no file, everything is allowed; if the fetch fails, nothing is (RFC 9309, 2.3.1). Blocks.
        Raises InvalidURL, and RuntimeError inside an event loop: await a gate there.
        """
        target, policy = Target.of(self.url), RobotsPolicy(dialect=self._dialect)
        with blocking.open_gate(self._agent, robots=policy, fetching=self._fetching) as gate:
            access = gate.explain(target.url).snapshot.access
        self.allow_all = isinstance(access, Unavailable)
        self.disallow_all = not isinstance(access, Found | Unavailable)
        self.robots = parse(access.body if isinstance(access, Found) else "", self._dialect)
        self.modified()

    def parse(self, lines: Iterable[str]) -> None:
        """Parse a file from its lines, with or without line ends, or from one str. Never raises on content."""
        self.robots = parse(lines if isinstance(lines, str) else "\n".join(lines), self._dialect)
        self.modified()

    def can_fetch(self, useragent: str, url: str) -> bool:
        """Return whether a user agent (`useragent`) may fetch the URL. Never raises; False for an invalid URL."""
        if self.disallow_all:
            return False
        if self.allow_all:
            return True
        return bool(self.last_checked) and _allows(self.robots, useragent, url)

    def crawl_delay(self, useragent: str) -> float | None:
        """Return the Crawl-delay for a user agent (`useragent`) in seconds, or None."""
        return _rules_for(self.robots, useragent).crawl_delay if self.last_checked else None

    def request_rate(self, useragent: str) -> RequestRate | None:
        """Return the Request-rate for a user agent (`useragent`) without its times, as urllib does, or None."""
        rate = _rules_for(self.robots, useragent).request_rate if self.last_checked else None
        return None if rate is None else RequestRate(rate.requests, int(rate.seconds))

    def site_maps(self) -> list[str] | None:
        """Return the absolute URLs of the Sitemap lines, or None if there are none."""
        return list(self.robots.sitemaps) or None

    def __str__(self) -> str:
        """Return the file, normalized."""
        # Lone surrogates, as text cut at a limit may contain, cannot be printed.
        return self.robots.to_text().encode("utf-8", "backslashreplace").decode().rstrip("\n")
