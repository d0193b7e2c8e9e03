"""Group: the user-agent lines and rules that belong together, and which groups bind a crawler."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polite.robots import pace
from polite.robots.agent import UserAgent, names_agent, names_everyone
from polite.robots.dialect import Dialect
from polite.robots.lines import Field
from polite.robots.rules import Rule, RuleLine, RuleSet, as_rule


@dataclass(frozen=True, slots=True)
class Group:
    """One group of the file. `agents`: the values of its user-agent lines as written, `lines`: their numbers, 1-based.

    `rule_lines` and `paces` (Crawl-delay, Request-rate and Visit-time, as field and value) are as read.
    """

    agents: tuple[str, ...]
    lines: tuple[int, ...]
    rule_lines: tuple[RuleLine, ...]
    paces: tuple[tuple[Field, str], ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The group's rules, in the order of the file."""
        return tuple(map(as_rule, self.rule_lines))

    def names(self, name: str) -> bool:
        """Whether one of its lines names this crawler (lower-case)."""
        return any(names_agent(agent, name) for agent in self.agents)

    def names_everyone(self) -> bool:
        return any(map(names_everyone, self.agents))


def bind(groups: Sequence[Group], agent: UserAgent, dialect: Dialect) -> RuleSet:
    """The rules of the groups with the most specific of the agent's names; else those of `*`; else none (A1, A4)."""
    for name in agent.names(dialect):
        if named := [group for group in groups if group.names(name)]:
            return _combined(named, name, dialect)
    everyone = [group for group in groups if group.names_everyone()]
    return _combined(everyone, "*" if everyone else None, dialect)


def _combined(groups: Sequence[Group], name: str | None, dialect: Dialect) -> RuleSet:
    """Several groups of one name hold together, or the first alone does (G5)."""
    valid = groups if dialect.combines_groups else groups[:1]
    return RuleSet(
        [line for group in valid for line in group.rule_lines],
        group=name,
        dialect=dialect,
        crawl_delay=pace.crawl_delay(_values(valid, Field.CRAWL_DELAY)),
        request_rate=pace.request_rate(_values(valid, Field.REQUEST_RATE)),
        visit_time=pace.visit_time(_values(valid, Field.VISIT_TIME)),
    )


def _values(groups: Iterable[Group], field: Field) -> list[str]:
    return [value for group in groups for each, value in group.paces if each is field]
