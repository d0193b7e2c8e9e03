"""Rules for callers that pass any value as agent and URL: no exceptions, and an invalid URL is disallowed."""

from polite.errors import InvalidURL, InvalidUserAgent
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.parse import Robots
from polite.robots.rules import RuleSet

# A name that no file has, so the group for * applies.
_UNNAMED = UserAgent("unnamed", tokens=("unnamed-agent-that-no-group-names",))


def rules_for(robots: Robots, user_agent: str) -> RuleSet:
    """Return the rules for the agent; those of the group for "*" if the agent has no valid name."""
    try:
        return robots.rules_for(user_agent)
    except InvalidUserAgent:
        return robots.rules_for(_UNNAMED)


def allows(robots: Robots, user_agent: str, url: str) -> bool:
    """Whether the agent may fetch an absolute URL, or a path that starts with "/". False if that is invalid."""
    try:
        path = url if url.startswith("/") else Target.of(url).path
    except (InvalidURL, AttributeError, TypeError):
        # None or bytes, for example.
        return False
    return rules_for(robots, user_agent).allows(path)
