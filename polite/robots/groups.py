"""Group: user-agent lines and the lines below them; and which groups bind a crawler."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polite import pace
from polite.robots.agent import UserAgent, names_agent, names_all
from polite.robots.decision import Rule, RuleLine, to_rule
from polite.robots.dialect import Dialect, let_threads_switch
from polite.robots.lines import WHITE, Field, Fields, fields_of, readable
from polite.robots.rules import RuleSet

_RULES = frozenset({Field.ALLOW, Field.DISALLOW})
_PACES = frozenset({Field.CRAWL_DELAY, Field.REQUEST_RATE, Field.VISIT_TIME})
# Fields that belong to no group and end none (G6). A line without a field has no effect.
_UNGROUPED = frozenset({Field.SITEMAP, Field.HOST, Field.NONE, Field.USER_AGENT})


# A line of one field: the positions in the file's text where it starts and ends, and its value, one character per octet. A plain
# tuple: a hostile file has 39,000.
FieldLine = tuple[int, int, str]
# Octets that one call splits into rows. Other threads, such as an event loop's, wait for that call.
_AT_A_TIME = 16_384
# Octets that may hold enough lines of one field to take half a millisecond.
_MANY_LINES = 8_192


class GroupLines(NamedTuple):
    """The lines below a group's user-agent lines. Texts have one character per octet.

    Attributes:
        paths: the rules' paths.
        marks: for each rule its line, doubled, plus one for an Allow.
        paces: Crawl-delay, Request-rate and Visit-time as (field, value).
    """

    paths: list[str]
    marks: list[int]
    paces: list[tuple[Field, str]]


class Sections:
    """A file that is cut at its user-agent lines only.

    The lines between are read if an agent is bound by them. Most of a file's groups are for other crawlers, and many a
    large "file" is a page of HTML.
    """

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._fields = fields_of(dialect)
        self.agents: list[FieldLine] = list(field_lines(text, Field.USER_AGENT, self._fields))

    def groups(self, of: Iterable[int]) -> Iterator[range]:
        """Iterate over the groups that contain these user-agent lines (positions, ascending).

        Each group is the range of its user-agent lines.
        """
        agents, separated, most = self.agents, self._separated, len(self.agents)
        stop = 0
        for position in of:
            if position < stop:
                continue
            start = position
            while start > stop and not separated(start - 1):
                start -= 1
            stop = position + 1
            # Most lines that do not start a group follow the line before at once.
            while stop < most and (agents[stop][0] == agents[stop - 1][1] + 1 or not separated(stop - 1)):
                stop += 1
            yield range(start, stop)

    def below(self, groups: Iterable[range]) -> GroupLines:
        """Read the lines of these groups, merged. The groups must be in the order of the file."""
        together = GroupLines([], [], [])
        # User-agent lines between groups that follow each other say nothing more.
        for _ in self.each_below(_joined(groups), together):
            pass
        return together

    def each_below(self, groups: Iterable[range], together: GroupLines | None = None) -> Iterator[GroupLines]:
        """Read the lines of each of these groups, which must be in the order of the file, alone or together."""
        number, counted, agents = 1, 0, self.agents
        for group in groups:
            start = agents[group.start][1]
            stop = agents[group.stop][0] if group.stop < len(agents) else len(self._text)
            number += self._text.count("\n", counted, start)
            counted = start
            below = GroupLines([], [], []) if together is None else together
            # The first row is the empty rest of the user-agent line.
            while start <= stop:
                end = stop if stop - start <= _AT_A_TIME else self._text.find("\n", start + _AT_A_TIME, stop)
                end = stop if end < 0 else end
                let_threads_switch()
                _read(self._text[start:end], number, self._fields, self._dialect, below)
                number += self._text.count("\n", start, end + 1)
                start = end + 1
            counted = start
            yield below

    def numbers(self) -> list[int]:
        """Return the number of each user-agent line, 1-based."""
        found: list[int] = []
        number, counted = 1, 0
        for start, _, _ in self.agents:
            number += self._text.count("\n", counted, start)
            counted = start
            found.append(number)
        return found

    def _separated(self, position: int) -> bool:
        """Return whether the next user-agent line starts another group (G1, G2)."""
        start, stop = self.agents[position][1] + 1, self.agents[position + 1][0] - 1
        if start > stop:
            return False
        text, fields = self._text, self._fields
        if text.find("\n", start, stop) < 0 and "#" not in (row := text[start:stop]):
            # Hot path: one line, as in a file that has a group for each rule.
            name, colon, _ = row.partition(":")
            if colon and fields[name] in _RULES and fields.separates(row):
                return True
        # A known field, or an unknown one such as `x:`.
        least = min(fields.least, 2)
        while start <= stop:
            end = text.find("\n", start, stop)
            end = stop if end < 0 else end
            if end - start >= least and self._parts(text[start:end]):
                return True
            start = end + 1
        return self._dialect.blank_line_separates and self._blank_before(self.agents[position + 1][0] - 1)

    def _parts(self, row: str) -> bool:
        name, colon, _ = row.partition(":")
        field = self._fields[name] if colon else Field.NONE
        if field is Field.NONE:
            field, _ = self._fields.read(row)
        if field in _RULES:
            return self._fields.separates(row)
        return self._dialect.any_field_ends_agents and field not in _UNGROUPED

    def _blank_before(self, stop: int) -> bool:
        """Return whether the last line before this position that is no comment is blank."""
        text = self._text
        while True:
            start = text.rfind("\n", 0, stop) + 1
            row = text[start:stop].strip(WHITE)
            if not row.startswith("#"):
                return not row
            stop = start - 1


def _joined(groups: Iterable[range]) -> Iterator[range]:
    """Join groups that follow each other: a hostile file has 20,000 of them."""
    start = stop = 0
    for group in groups:
        if group.start != stop:
            if start < stop:
                yield range(start, stop)
            start = group.start
        stop = group.stop
    if start < stop:
        yield range(start, stop)


def field_lines(text: str, of: Field, fields: Fields) -> Iterator[FieldLine]:
    """Iterate over every line of a field: user-agent, Sitemap or Host.

    All names of these fields start alike, and no search is faster than `find`.
    """
    start_of_field, names = fields.starts[of]
    # Octets, since lower() of a str changes letters outside ASCII, too.
    lower = text.encode("latin-1").lower()
    at = lower.find(start_of_field)
    switch_at = _MANY_LINES
    while at >= 0:
        if at > switch_at:
            let_threads_switch()
            switch_at = at + _MANY_LINES
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        start = at if text[at - 1 : at] == "\n" else text.rfind("\n", 0, at) + 1
        if lower.startswith(names, at) and (start == at or not text[start:at].strip(WHITE)):
            # Hot path: inlines Fields.read for a line with a colon and without a comment.
            name, colon, value = text[at:end].partition(":")
            if colon and fields[name] is of and "#" not in value:
                yield start, end, value.strip(WHITE)
                at = lower.find(start_of_field, end + 1)
                continue
            field, value = fields.read(text[at:end])
            if field is of:
                yield start, end, value
        at = lower.find(start_of_field, end + 1)


def _read(text: str, number: int, fields: Fields, dialect: Dialect, below: GroupLines) -> None:
    """Add the rules and paces of the text to `below`. `number`: the number of the first row."""
    paths, marks, paces = below
    disallow, allow, none = Field.DISALLOW, Field.ALLOW, Field.NONE
    has_comments, forgiving = "#" in text, dialect.colon_optional
    colonless, least = fields.colonless, fields.least
    mark = 2 * number - 2
    for row in text.split("\n"):
        mark += 2
        # Nearly each file has blank lines, and a hostile one has 500,000.
        if len(row) < least:
            continue
        name, colon, value = row.partition(":")
        field = fields[name] if colon else none
        if field is none and forgiving and colonless(row):
            field, value = fields.read(row) if colon else fields.read_colonless(row)
        if field is disallow or field is allow:
            if has_comments and "#" in value:
                value = value.partition("#")[0]
            paths.append(value.strip(WHITE))
            marks.append(mark if field is disallow else mark + 1)
        elif field in _PACES:
            paces.append((field, value.partition("#")[0].strip(WHITE)))


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


def groups(sections: Sections, bound: Sequence[range] | None = None) -> Iterator[Group]:
    """Iterate over the groups that `select_groups` returned, or over all, in the order of the file. Reads no other group."""
    if bound is None:
        bound = list(sections.groups(range(len(sections.agents))))
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
    names = agent.names(dialect)
    values = [value for _, _, value in sections.agents]
    # Each value once: a hostile file has 39,000 lines.
    distinct = set(values)
    near = [value for value in distinct if value.lower().startswith(names)]
    found: str | None = None
    naming: set[str] = set()
    for name in names if near else ():
        naming = {value for value in near if names_agent(value, name)}
        if naming:
            found = name
            break
    if found is None:
        naming = {value for value in distinct if names_all(value)}
        found = "*" if naming else None
    bound = list(sections.groups([at for at, value in enumerate(values) if value in naming]))
    # Several groups of one name apply together, or only the first one (G5).
    return found, bound if dialect.combines_groups else bound[:1]


def rules_of(sections: Sections, bound: Iterable[range], name: str | None, dialect: Dialect) -> RuleSet:
    """Return the rules of these groups together. The rule set is not prepared."""
    below = sections.below(bound)
    paces: dict[str, Any] = {}
    if below.paces:  # not so for nearly every group
        paces["crawl_delay"] = pace.crawl_delay(_values(below, Field.CRAWL_DELAY))
        paces["request_rates"] = pace.request_rates(_values(below, Field.REQUEST_RATE))
        paces["visit_time"] = pace.visit_time(_values(below, Field.VISIT_TIME))
    return RuleSet(below.paths, below.marks, group=name, dialect=dialect, **paces)


def _values(below: GroupLines, field: Field) -> list[str]:
    # Each once: a hostile file repeats one 30,000 times.
    return list(dict.fromkeys(value for each, value in below.paces if each is field))
