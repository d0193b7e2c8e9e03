"""Bindings: the rules of one file for many agents in sequence, in constant memory."""

from collections.abc import Iterator

from polite.robots.agent import UserAgent
from polite.robots.dialect import Dialect
from polite.robots.groups import rules_of, select_groups
from polite.robots.lines import readable
from polite.robots.rules import RuleSet
from polite.robots.sections import Sections


class Bindings:
    """Binds one agent after another.

    Keeps only the last rules, so memory does not grow with the number of agents. Use `Robots.rules_for` for the few
    agents of a crawler, whose rules are used again and again.
    """

    def __init__(self, sections: Sections, dialect: Dialect) -> None:
        self._sections = sections
        self._dialect = dialect
        self._bound: list[range] | None = None
        self._rules = RuleSet((), group=None, dialect=dialect)

    def names(self) -> Iterator[str]:
        """Iterate over the values of all user-agent lines, as written."""
        return (readable(value) for _, _, value in self._sections.agents)

    def rules_for(self, agent: UserAgent) -> RuleSet:
        """Return rules that decide as the agent's rules do.

        If the same groups bind this agent and the previous one, the result is the same object. Its `group` may then be the
        name of the other agent.
        """
        name, bound = select_groups(self._sections, agent, self._dialect)
        if bound != self._bound:
            self._rules = rules_of(self._sections, bound, name, self._dialect)
            self._bound = bound
        return self._rules
