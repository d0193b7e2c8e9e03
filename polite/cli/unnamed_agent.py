"""Returns an agent that no group of a robots.txt names."""

from collections.abc import Iterable

from polite.robots.agent import UserAgent


def unnamed_agent(names: Iterable[str]) -> UserAgent:
    """Return an agent whose name is longer than all of these names."""
    return UserAgent("unnamed", tokens=("x" * (1 + max(map(len, names), default=0)),))
