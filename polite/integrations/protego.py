"""Protego: the interface of the package Protego on polite's rules. See docs/how-to/replace-protego.md for differences."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import time
from typing import NamedTuple

from polite import pace
from polite.errors import InvalidURL, InvalidUserAgent
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.dialect import GOOGLE, RFC9309, Dialect
from polite.robots.parse import Robots, parse
from polite.robots.rules import RuleSet

_DAY_MIN = 24 * 60

PROTEGO = replace(
    RFC9309,
    name="protego",
    misspellings=(
        *GOOGLE.misspellings,
        ("sitemaps", "sitemap"),
        ("crawl delay", "crawl-delay"),
        ("request rate", "request-rate"),
        ("visit time", "visit-time"),
    ),
    colonless_values=True,
    allow_needs_colon=False,
    any_field_ends_agents=True,
    derives_general_names=True,
    dollar_is_both=True,
    index_is_folder=True,
    reserved_equal_escapes=True,
    escaped_slash_differs=True,
)
"""RFC9309 with Protego's further leniencies, to change as few decisions as possible. Pass RFC9309 for a strict reading."""


# A name that no file has, so the group for * applies.
_UNNAMED = UserAgent("unnamed", tokens=("unnamed-agent-that-no-group-names",))


def _rules_for(robots: Robots, user_agent: str) -> RuleSet:
    """Return the rules for the agent; those of the group for "*" if the agent has no valid name."""
    try:
        return robots.rules_for(user_agent)
    except InvalidUserAgent:
        return robots.rules_for(_UNNAMED)


def _allows(robots: Robots, user_agent: str, url: str) -> bool:
    """Whether the agent may fetch an absolute URL, or a path that starts with "/". False if that is invalid."""
    try:
        path = url if url.startswith("/") else Target.of(url).path
    except (InvalidURL, AttributeError, TypeError):
        # None or bytes, for example.
        return False
    return _rules_for(robots, user_agent).allows(path)


class RequestRate(NamedTuple):
    """A number of requests per number of seconds.

    Attributes:
        requests: The number of requests.
        seconds: The number of seconds.
        start_time: From when it applies, in UTC; None if the file has no times.
        end_time: Until when it applies, in UTC; None if the file has no times.
    """

    requests: int
    seconds: int
    start_time: time | None
    end_time: time | None


class VisitTime(NamedTuple):
    """The preferred time for visits, in UTC.

    Attributes:
        start_time: When it begins.
        end_time: When it ends.
    """

    start_time: time
    end_time: time


class Protego:
    """A parsed robots.txt.

    Attributes:
        robots: the file as polite parsed it; it also gives decisions with reasons.
    """

    def __init__(self, robots: Robots | None = None) -> None:
        self.robots: Robots = parse("", PROTEGO) if robots is None else robots

    @classmethod
    def parse(cls, content: str, *, dialect: Dialect = PROTEGO) -> "Protego":
        """Parse a file in a dialect. Never raises on content. Raises TypeError if `content` is not a str."""
        if not isinstance(content, str):
            raise TypeError(f"Protego.parse expects str, got {type(content).__name__}")
        return cls(parse(content, dialect))

    def can_fetch(self, url: str, user_agent: str) -> bool:
        """Return whether the user agent may fetch the URL. Never raises; False for an invalid URL."""
        return _allows(self.robots, user_agent, url)

    def crawl_delay(self, user_agent: str) -> float | None:
        """Return the Crawl-delay for a user agent in seconds, or None."""
        return _rules_for(self.robots, user_agent).crawl_delay

    def request_rate(self, user_agent: str) -> RequestRate | None:
        """Return the Request-rate for a user agent with its times, or None."""
        rate = _rules_for(self.robots, user_agent).request_rate
        if rate is None:
            return None
        start, end = (None, None) if rate.window is None else _times(rate.window)
        return RequestRate(rate.requests, int(rate.seconds), start, end)

    def visit_time(self, user_agent: str) -> VisitTime | None:
        """Return the Visit-time for a user agent, or None."""
        window = _rules_for(self.robots, user_agent).visit_time
        return None if window is None else _times(window)

    @property
    def sitemaps(self) -> Iterator[str]:
        """The absolute URLs of the Sitemap lines."""
        return iter(self.robots.sitemaps)

    @property
    def preferred_host(self) -> str | None:
        """The value of the first Host line."""
        return self.robots.host


def _times(window: pace.VisitTime) -> VisitTime:
    """24:00 becomes 00:00, since a `time` has no 24:00."""
    start, end = (time(*divmod(minute % _DAY_MIN, 60)) for minute in (window.start_min, window.end_min))
    return VisitTime(start, end)
