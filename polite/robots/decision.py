"""Decision: what was decided about a path, by which rule, and why."""

from dataclasses import FrozenInstanceError
from operator import itemgetter
from typing import NamedTuple, NoReturn, Protocol

from polite.errors import redact_url
from polite.robots.fetching.result import FetchResult
from polite.robots.lines import readable
from polite.robots.reason import Reason


class Rule(NamedTuple):
    """One Allow or Disallow: its path as written, octets that are not UTF-8 as `\\xNN`, and its line, 1-based."""

    allows: bool
    pattern: str
    line: int

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {redact_url(self.pattern)} (line {self.line})"


# A rule as it was read: whether it allows, its path with one character per octet, and its line.
RuleLine = tuple[bool, str, int]


def to_rule(line: RuleLine) -> Rule:
    """The rule as people read it."""
    return Rule(line[0], readable(line[1]), line[2])


class Decider(Protocol):
    """What a decision came from, to be asked for what it seldom is asked for."""

    @property
    def access(self) -> FetchResult | None: ...

    @property
    def cause(self) -> Reason | None: ...

    def matching(self, path: str) -> tuple[Rule, ...]: ...

    def undefined(self, path: str) -> bool: ...

    def conflict(self, path: str) -> Rule | None: ...


class _Fields(NamedTuple):
    path: str
    allowed: bool
    reason: Reason
    rule: Rule | None
    decider: Decider


# A tuple below, for its speed: a frozen dataclass takes four times as long to make, and one is made for each question.
class Decision(_Fields):
    """What was decided about a path, by which rule, and why. True when the path may be fetched. Frozen.

    `rule` is None when no rule decided; `reason` says what did. Decisions are equal when they say the same.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return self.allowed

    def __eq__(self, other: object) -> bool:
        return _said(self) == _said(other) if isinstance(other, Decision) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_said(self))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    @property
    def access(self) -> FetchResult | None:
        """What the robots fetch came to, when that alone allows or denies everything."""
        return self.decider.access

    @property
    def cause(self) -> Reason | None:
        """Why the robots fetch came to that."""
        return self.decider.cause

    @property
    def overruled(self) -> tuple[Rule, ...]:
        """The other rules that match the path, best first. Worked out when asked for."""
        matching = self.decider.matching(self.path)
        return tuple(rule for rule in matching if rule != self.rule)

    @property
    def undefined(self) -> bool:
        """Whether the dialect's document calls this situation undefined: the order of a wildcard rule (P3).

        Worked out when asked for, by a look at each rule. The text of a decision names the conflict only where that is quick.
        """
        return self.reason is Reason.RULE and self.decider.undefined(self.path)

    def __str__(self) -> str:
        verdict = "allowed" if self.allowed else "disallowed"
        if self.rule is None:
            because = "" if self.cause is None else f" ({self.cause.value})"
            return f"{verdict}: {self.reason.value}{because}"
        opposed = self.decider.conflict(self.path) if self.reason is Reason.RULE else None
        conflict = "" if opposed is None else f", whose conflict with {opposed} is undefined"
        return f"{verdict} by {self.rule}{conflict}"

    def __repr__(self) -> str:
        return f"<Decision {redact_url(self.path)}: {self}>"


_said = itemgetter(0, 1, 2, 3)
