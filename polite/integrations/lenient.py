"""Answers for callers who pass anything as agent and URL: never an exception, and what is no URL is denied."""

from polite.errors import InvalidURL, InvalidUserAgent
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.parse import Robots
from polite.robots.rules import RuleSet

# A name that no file has: whoever cannot be named is bound by the rules for everybody.
_NOBODY = UserAgent("nobody", tokens=("nobody-who-has-a-name-of-its-own",))


def rules_for(robots: Robots, user_agent: str) -> RuleSet:
    """The rules that bind the agent; "*" and what has no name are bound as everybody is."""
    try:
        return robots.rules_for(user_agent)
    except InvalidUserAgent:
        return robots.rules_for(_NOBODY)


def allows(robots: Robots, user_agent: str, url: str) -> bool:
    """Whether the agent may fetch an absolute URL, or a path that starts with "/"; when unsure, it may not."""
    try:
        path = url if url.startswith("/") else Target.of(url).path
    except (InvalidURL, AttributeError, TypeError):
        # None, octets: what is no URL may not be fetched.
        return False
    return rules_for(robots, user_agent).allows(path)
