"""Group: user-agent lines with their rules; and which groups bind a crawler."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from polite import pace
from polite.robots.agent import UserAgent, names_agent, names_all
from polite.robots.decision import Rule, RuleLine, to_rule
from polite.robots.dialect import Dialect
from polite.robots.lines import Field, readable
from polite.robots.rules import RuleSet
from polite.robots.sections import GroupLines, Sections

# Rule sets above this size are prepared when bound, since the first decision would take too long.
_MANY_RULES = 2_500


@dataclass(frozen=True, slots=True)
class Group:
    """One group of the file.

    Attributes:
        agents: the values of its user-agent lines, as written.
        lines: the numbers of these lines, 1-based.
        rule_lines: its rules, as read.
        paces: Crawl-delay, Request-rate and Visit-time as (field, value), as read.
    """

    agents: tuple[str, ...]
    lines: tuple[int, ...]
    rule_lines: tuple[RuleLine, ...]
    paces: tuple[tuple[Field, str], ...] = ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The group's rules, in the order of the file."""
        return tuple(map(to_rule, self.rule_lines))

    def __reduce__(self) -> tuple[type["Group"], tuple[object, ...]]:
        return Group, (self.agents, self.lines, self.rule_lines, self.paces)

    def names(self, name: str) -> bool:
        """Return whether one of its lines names this crawler (lower-case)."""
        return any(names_agent(agent, name) for agent in self.agents)

    def names_all(self) -> bool:
        """Return whether one of its lines is `*`."""
        return any(map(names_all, self.agents))


def groups(sections: Sections) -> Iterator[Group]:
    """Iterate over all groups, in the order of the file."""
    return _read(sections, list(sections.groups(range(len(sections.agents)))))


def bound_groups(sections: Sections, agent: UserAgent, dialect: Dialect) -> list[Group]:
    """Return the groups that bind an agent. Reads no other group."""
    return list(_read(sections, select_groups(sections, agent, dialect)[1]))


def _read(sections: Sections, bound: Sequence[range]) -> Iterator[Group]:
    numbers = sections.numbers()
    for group, below in zip(bound, sections.each_below(bound), strict=True):
        yield Group(
            tuple(readable(sections.agents[position][2]) for position in group),
            tuple(numbers[group.start : group.stop]),
            tuple(
                (mark & 1 == 1, path, mark >> 1) for path, mark in zip(below.paths, below.marks, strict=True)
            ),
            tuple(below.paces),
        )


def bind(sections: Sections, agent: UserAgent, dialect: Dialect) -> RuleSet:
    """Return the rules for the agent's most specific name, or those of `*`, or none (A1, A4)."""
    name, bound = select_groups(sections, agent, dialect)
    rules = rules_of(sections, bound, name, dialect)
    return rules.prepare() if len(rules) > _MANY_RULES else rules


def select_groups(sections: Sections, agent: UserAgent, dialect: Dialect) -> tuple[str | None, list[range]]:
    """Return the name under which the agent is found, and its groups.

    The name is "*" or None if no name of the agent is found. A group is the range of its user-agent lines.
    """
    name, positions = _select(sections, agent.names(dialect))
    bound = list(sections.groups(positions))
    # Several groups of one name apply together, or only the first one (G5).
    return name, bound if dialect.combines_groups else bound[:1]


def rules_of(sections: Sections, bound: Iterable[range], name: str | None, dialect: Dialect) -> RuleSet:
    """Return the rules of these groups together. The rule set is not prepared."""
    below = sections.below(bound)
    has_pace = bool(below.paces)  # false for nearly every group
    return RuleSet(
        below.paths,
        below.marks,
        group=name,
        dialect=dialect,
        crawl_delay=pace.crawl_delay(_values(below, Field.CRAWL_DELAY)) if has_pace else None,
        request_rates=pace.request_rates(_values(below, Field.REQUEST_RATE)) if has_pace else (),
        visit_time=pace.visit_time(_values(below, Field.VISIT_TIME)) if has_pace else None,
    )


def _select(sections: Sections, names: Sequence[str]) -> tuple[str | None, list[int]]:
    """Return the name that is found, "*", or None; and the positions of its user-agent lines."""
    starts = tuple(names)
    values = [value for _, _, value in sections.agents]
    # Each value once: a hostile file has 39,000 lines.
    distinct = set(values)
    near = [value for value in distinct if value.lower().startswith(starts)]
    for name in names if near else ():
        if naming := {value for value in near if names_agent(value, name)}:
            return name, _positions(values, naming)
    everyone = {value for value in distinct if names_all(value)}
    return "*" if everyone else None, _positions(values, everyone)


def _positions(values: Sequence[str], of: Collection[str]) -> list[int]:
    return [position for position, value in enumerate(values) if value in of]


def _values(below: GroupLines, field: Field) -> list[str]:
    # Each once: a hostile file repeats one 30,000 times.
    return list(dict.fromkeys(value for each, value in below.paces if each is field))
