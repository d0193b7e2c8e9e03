"""Explained: everything in a file that decided about one path for one agent, as values and as text for people."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from polite.errors import shown
from polite.robots.agent import UserAgent
from polite.robots.dialect import CLASSIC, GOOGLE, GOOGLE_2010, GOOGLE_2019, RFC9309, Dialect
from polite.robots.group import Group
from polite.robots.lines import lines
from polite.robots.pattern import grammar
from polite.robots.rules import Decision, Rule, RuleSet
from polite.robots.signals import binding

_NAMED = (RFC9309, GOOGLE, GOOGLE_2019, GOOGLE_2010, CLASSIC)
# Fields that no verdict about a path depends on: a name, the fetch, and what is only called undefined.
_ELSEWHERE = {"name", "denied_statuses", "forgives_unreachable", "wildcard_conflict"}

# Of more rules nobody reads the rest.
_MOST_TOLD = 20


class Readable(Protocol):
    """A file that was read: as much of Robots as is needed here."""

    @property
    def dialect(self) -> Dialect:
        """How it was read."""
        ...

    @property
    def groups(self) -> tuple[Group, ...]:
        """Its groups, in the order of the file."""
        ...

    def rules_for(self, agent: UserAgent) -> RuleSet:
        """The rules that bind the agent."""
        ...


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that matches the path, and where its path stands: `column` is 1-based, in characters of the line.

    `octets`: the length of its path in normal form, by which the longest is found (P1).
    """

    rule: Rule
    column: int
    octets: int


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """A field of the dialect that the verdict depends on: with `value` instead, as in `dialects`, it is the opposite."""

    field: str
    value: Any
    dialects: tuple[str, ...]

    def __str__(self) -> str:
        names = " and ".join(self.dialects)
        return f"{self.field}={shown(str(self.value))} (as in {names}) would turn the verdict round"


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a path may be fetched or not.

    `names`: what the file was searched for, most specific first; `group`: the name that was found, "*", or None; `groups`: all that
    bind the agent. `matches`: the rules that match, best first. `conflict`: the opposed rule, where the dialect's document leaves
    the order of the two undefined. `sensitive_to`: the fields of the dialect that would each turn the verdict round alone.
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
        """The match that decided, with its line and column; None when no rule did."""
        return next((match for match in self.matches if match.rule == self.decision.rule), None)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = [str(self.decision), f"group: {self._group()}"]
        for match in self.matches[:_MOST_TOLD]:
            role = "decides" if match == self.winner else "overruled"
            lines.append(f"{role}: {match.rule}, column {match.column}, {match.octets} octets")
        if len(self.matches) > _MOST_TOLD:
            lines.append(f"overruled: {len(self.matches) - _MOST_TOLD} more")
        if self.conflict is not None:
            lines.append(f"undefined: the document gives no order between it and {self.conflict}")
        return [*lines, *(f"dialect: {each}" for each in self.sensitive_to)]

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


def explain(
    robots: Readable, body: bytes, agent: UserAgent, path: str, read: Callable[[Dialect], Readable]
) -> Explained:
    """`body`: what `robots` was read from; `read` reads it in another dialect. About twenty readings, no more."""
    rules = robots.rules_for(agent)
    decision = rules.decide(path)
    matching = decision.overruled if decision.rule is None else (decision.rule, *decision.overruled)
    opposed = next((rule for rule in decision.overruled if rule.allows != decision.allowed), None)
    return Explained(
        agent,
        decision,
        agent.names(robots.dialect),
        rules.group,
        tuple(binding(robots.groups, agent, rules.group, robots.dialect)),
        _matches(body, matching, robots.dialect),
        opposed if decision.undefined else None,
        _sensitive_to(
            robots.dialect, lambda other: read(other).rules_for(agent).allows(path) != decision.allowed
        ),
    )


def _matches(body: bytes, matching: Sequence[Rule], dialect: Dialect) -> tuple[Match, ...]:
    wanted = {rule.line: rule for rule in matching}
    places = {
        line.number: (line.column, grammar(dialect).pattern(line.value).octets)
        for line in (lines(body, dialect) if wanted else ())
        if line.number in wanted
    }
    return tuple(Match(rule, *places[rule.line]) for rule in matching)


def _sensitive_to(dialect: Dialect, turns: Callable[[Dialect], bool]) -> tuple[Sensitivity, ...]:
    """Each field, one at a time, with each value that a named dialect has for it."""
    found: list[Sensitivity] = []
    for field in (field.name for field in fields(Dialect) if field.name not in _ELSEWHERE):
        values: dict[Any, list[str]] = {}
        for other in _NAMED:
            values.setdefault(getattr(other, field), []).append(other.name)
        values.pop(getattr(dialect, field), None)
        for value, names in values.items():
            if turns(replace(dialect, **{field: value})):
                found.append(Sensitivity(field, value, tuple(names)))
    return tuple(found)
