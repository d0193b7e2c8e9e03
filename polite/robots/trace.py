"""DecisionTrace: everything in a file that led to a decision, as values and as text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from polite.errors import redact_url
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision, Rule
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.groups import Group, Sections, groups, rules_of, select_groups
from polite.robots.lines import line_of, rows, text
from polite.robots.pattern import grammar
from polite.robots.rules import RuleSet

# Fields that change how paths compare, which groups bind an agent, and the text that is read. None of them changes where a given
# text is cut. A field that is missing here costs time and changes no result.
_COMPARE = {
    *("decodes_unreserved", "normalises_urls", "specials_equal_escapes", "excluded_equal_escapes"),
    *("reserved_equal_escapes", "escaped_slash_differs", "has_wildcards", "wildcard_conflict"),
    *("dollar_is_both", "index_is_folder", "supplies_slash", "exempts_robots_txt"),
}
_CHOOSE = {"combines_groups", "derives_general_names", "lettered_names_only"}
_TEXT = {"max_bytes", "max_line_bytes", "nul_ends_line", "reads_utf16", "skips_partial_bom"}
_SAME_CUT = {field: getattr(RFC9309, field) for field in sorted(_COMPARE | _CHOOSE | _TEXT)} | {"name": ""}


class Rereading:
    """Caches the sections of each text, the rules of each choice of groups, and each verdict."""

    def __init__(self, body: bytes, agent: UserAgent) -> None:
        self._body = body
        self._agent = agent
        self._sections: dict[tuple[str, Dialect], Sections] = {}
        self._rules: dict[tuple[int, tuple[str, ...], bool], RuleSet] = {}
        self._verdicts: dict[tuple[object, ...], bool] = {}

    def sections(self, dialect: Dialect) -> Sections:
        counted, cut = text(self._body, dialect), replace(dialect, **_SAME_CUT)
        sections = self._sections.get((counted, cut))
        if sections is None:
            sections = self._sections[counted, cut] = Sections(counted, dialect)
        return sections

    def allows(self, dialect: Dialect, path: str) -> bool:
        """Return what `Robots.rules_for(agent).allows(path)` returns in this dialect."""
        sections = self.sections(dialect)
        choice = id(sections), self._agent.names(dialect), dialect.combines_groups
        if choice not in self._rules:
            name, bound = select_groups(sections, self._agent, dialect)
            self._rules[choice] = rules_of(sections, bound, name, dialect)
        rules = self._rules[choice].read_as(dialect)
        key = rules.reading(path)
        if key not in self._verdicts:
            self._verdicts[key] = rules.allows_once(path)
        return self._verdicts[key]


_NAMED = (RFC9309, GOOGLE, GOOGLE_2019, GOOGLE_2010, CLASSIC)
# Fields without effect on a verdict about a path: the name, the fetch, and what is only called undefined.
_IRRELEVANT = {"name", "denied_statuses", "forgives_unreachable", "wildcard_conflict"}

# Matches that the text lists.
_MAX_MATCHES = 20


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that matches the path, and the position of its path in the file.

        >>> from polite import parse
        >>> robots = parse("User-agent: *\\nDisallow: /a\\nAllow: /a/b")
        >>> [(match.rule.line, match.column, match.octets) for match in robots.explain("ExampleBot", "/a/b").matches]
        [(3, 8, 4), (2, 11, 2)]

    Attributes:
        rule: the rule.
        column: 1-based, in characters of the line.
        octets: the length of the path in normal form, by which the longest match is found (P1).
    """

    rule: Rule
    column: int
    octets: int


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A field of the dialect that the verdict depends on.

        >>> from polite import parse
        >>> for each in parse("User-agent: *\\nDisallow: /*.pdf").explain("ExampleBot", "/a.pdf").sensitive_to:
        ...     print(each)
        has_wildcards=False (as in classic) would reverse this decision

    Attributes:
        field: the name of the field.
        value: a value with which the verdict is the opposite.
        dialects: the names of the dialects that have this value.
    """

    field: str
    value: Any
    dialects: tuple[str, ...]

    def __str__(self) -> str:
        names = " and ".join(self.dialects)
        return f"{self.field}={redact_url(str(self.value))} (as in {names}) would reverse this decision"


@dataclass(frozen=True, slots=True)
class DecisionTrace:
    """Why a path may be fetched or not.

        >>> from polite import parse
        >>> trace = parse("User-agent: *\\nDisallow: /a").explain("ExampleBot", "https://example.com/a")
        >>> print(trace)
        disallowed by Disallow: /a (line 2)
        group: * (line 1), since none is for examplebot
        decides: Disallow: /a (line 2), column 11, 2 octets

    Attributes:
        agent: the crawler.
        decision: the decision.
        names: the names that the file was searched for, most specific first.
        group: the name that was found, "*", or None.
        groups: all groups that bind the agent.
        matches: the rules that match, the strongest first.
        conflict: the opposed rule, if the dialect's document leaves the order of the two undefined.
        sensitive_to: the fields of the dialect that would each reverse the verdict alone.
    """

    agent: UserAgent
    decision: Decision
    names: tuple[str, ...]
    group: str | None
    groups: tuple[Group, ...]
    matches: tuple[Match, ...]
    conflict: Rule | None
    sensitive_to: tuple[Sensitivity, ...]

    @property
    def winner(self) -> Match | None:
        """The match that decided, with its line and column, or None."""
        return next((match for match in self.matches if match.rule == self.decision.rule), None)

    def __str__(self) -> str:
        lines = [str(self.decision), f"group: {self._group()}"]
        for match in self.matches[:_MAX_MATCHES]:
            role = "decides" if match == self.winner else "overruled"
            lines.append(f"{role}: {match.rule}, column {match.column}, {match.octets} octets")
        if len(self.matches) > _MAX_MATCHES:
            lines.append(f"overruled: {len(self.matches) - _MAX_MATCHES} more")
        if self.conflict is not None:
            lines.append(f"undefined: the document gives no order between it and {self.conflict}")
        return "\n".join([*lines, *(f"dialect: {each}" for each in self.sensitive_to)])

    def _group(self) -> str:
        searched = ", ".join(self.names) or "no name that this dialect can find"
        if self.group is None:
            return f"none; searched for {searched} and *"
        numbers = ", ".join(str(number) for group in self.groups for number in group.lines)
        where = f"{'line' if ',' not in numbers else 'lines'} {numbers}"
        if self.group == "*":
            return f"* ({where}), since none is for {searched}"
        before = self.names[: self.names.index(self.group)]
        return f"{self.group} ({where})" + (f", since none is for {', '.join(before)}" if before else "")


def explain(body: bytes, agent: UserAgent, path: str, dialect: Dialect) -> DecisionTrace:
    """Decide about a path, and collect all that led to the decision.

    The file is read again only for dialects that may read it differently.

    Args:
        body: the file.
        agent: the crawler.
        path: the path with query.
        dialect: how the file is read.
    """
    reread = Rereading(body, agent)
    sections = reread.sections(dialect)
    name, bound = select_groups(sections, agent, dialect)
    rules = rules_of(sections, bound, name, dialect)
    decision = rules.decide(path)
    matching = rules.matching(path)
    if decision.rule is not None:
        matching = decision.rule, *(rule for rule in matching if rule != decision.rule)
    opposed = next((rule for rule in matching if rule.allows != decision.allowed), None)
    return DecisionTrace(
        agent,
        decision,
        agent.names(dialect),
        rules.group,
        tuple(groups(sections, bound)),
        _matches(body, matching, dialect),
        opposed if decision.undefined else None,
        _sensitive_to(dialect, lambda other: reread.allows(other, path) != decision.allowed),
    )


def _matches(body: bytes, matching: Sequence[Rule], dialect: Dialect) -> tuple[Match, ...]:
    texts = rows(body, dialect) if matching else []
    paths = grammar(dialect)
    found: list[Match] = []
    for rule in matching:
        line = line_of(rule.line, texts[rule.line - 1], dialect)
        found.append(Match(rule, line.column, paths.pattern(line.value).octets))
    return tuple(found)


def _sensitive_to(dialect: Dialect, reverses: Callable[[Dialect], bool]) -> tuple[Sensitivity, ...]:
    """Try each field alone, with each value of the named dialects."""
    found: list[Sensitivity] = []
    for field in (field.name for field in fields(Dialect) if field.name not in _IRRELEVANT):
        values: dict[Any, list[str]] = {}
        for other in _NAMED:
            values.setdefault(getattr(other, field), []).append(other.name)
        values.pop(getattr(dialect, field), None)
        for value, names in values.items():
            if reverses(replace(dialect, **{field: value})):
                found.append(Sensitivity(field, value, tuple(names)))
    return tuple(found)
