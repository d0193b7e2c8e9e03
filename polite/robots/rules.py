"""The rules that bind one crawler, and what they decide about a path."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from polite.errors import InvalidURL, shown
from polite.robots.access import Access
from polite.robots.dialect import RFC9309, Dialect, WildcardConflict
from polite.robots.lines import readable
from polite.robots.pace import RequestRate, VisitTime
from polite.robots.pattern import Pattern, grammar
from polite.robots.reason import Reason

# A rule as it was read: whether it allows, its path with one character per octet, and its line. A plain tuple, since
# a file may hold fifty thousand of them.
RuleLine = tuple[bool, str, int]
# A rule made ready: what decides precedence, what it matches, and where it comes from.
_Ranked = tuple[int, Pattern, RuleLine]


class Rule(NamedTuple):
    """One Allow or Disallow: its path as written, octets that are not UTF-8 as `\\xNN`, and its line, 1-based."""

    allows: bool
    pattern: str
    line: int

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {shown(self.pattern)} (line {self.line})"


def as_rule(line: RuleLine) -> Rule:
    """The rule as people read it."""
    return Rule(line[0], readable(line[1]), line[2])


@dataclass(frozen=True, slots=True, repr=False)
class Decision:
    """What was decided about a path, by which rule, and why. True when the path may be fetched.

    `rule` is None when no rule decided; `reason` says what did.
    """

    path: str
    allowed: bool
    reason: Reason
    rule: Rule | None
    _rules: "RuleSet" = field(compare=False)

    def __bool__(self) -> bool:
        return self.allowed

    @property
    def access(self) -> Access | None:
        """What the robots fetch came to, when that alone allows or denies everything."""
        return self._rules.access

    @property
    def cause(self) -> Reason | None:
        """Why the robots fetch came to that."""
        return self._rules.cause

    @property
    def overruled(self) -> tuple[Rule, ...]:
        """The other rules that match the path, best first. Worked out when asked for."""
        matching = self._rules.matching(self.path)
        return tuple(rule for rule in matching if rule != self.rule)

    @property
    def undefined(self) -> bool:
        """Whether the dialect's document calls this situation undefined: the order of a wildcard rule (P3)."""
        return self.reason is Reason.RULE and self._rules.undefined(self.path)

    def __str__(self) -> str:
        verdict = "allowed" if self.allowed else "disallowed"
        if self.rule is None:
            because = "" if self.cause is None else f" ({self.cause.value})"
            return f"{verdict}: {self.reason.value}{because}"
        if not self.undefined:
            return f"{verdict} by {self.rule}"
        opposed = next(rule for rule in self.overruled if rule.allows != self.allowed)
        return f"{verdict} by {self.rule}, whose conflict with {opposed} is undefined"

    def __repr__(self) -> str:
        return f"<Decision {shown(self.path)}: {self}>"


class RuleSet:
    """The rules of the groups that bind one crawler, and what those groups ask about pace. Not to be changed.

    `group`: the name under which the crawler was found, "*", or None. `crawl_delay`: seconds, or None.
    `access` and `cause`: what a robots fetch came to, when that alone allows or denies everything.
    """

    __slots__ = (
        "_exempt",
        "_grammar",
        "_heads",
        "_lines",
        "_otherwise",
        "_ranking",
        "_reason",
        "access",
        "cause",
        "crawl_delay",
        "dialect",
        "group",
        "request_rate",
        "visit_time",
    )

    def __init__(
        self,
        lines: Sequence[RuleLine],
        *,
        group: str | None,
        dialect: Dialect,
        crawl_delay: float | None = None,
        request_rate: RequestRate | None = None,
        visit_time: VisitTime | None = None,
    ) -> None:
        self.group = group
        self.dialect = dialect
        self.crawl_delay = crawl_delay
        self.request_rate = request_rate
        self.visit_time = visit_time
        self.access: Access | None = None
        self.cause: Reason | None = None
        self._lines = lines
        self._otherwise = True
        self._reason = Reason.NO_GROUP if group is None else Reason.NO_RULE
        self._exempt = "/robots.txt" if dialect.exempts_robots_txt else None
        self._grammar = grammar(dialect)
        self._ranking: Sequence[_Ranked] | None = None
        self._heads: tuple[str, ...] = ()

    @classmethod
    def allow_all(
        cls,
        reason: Reason,
        *,
        access: Access | None = None,
        cause: Reason | None = None,
        dialect: Dialect = RFC9309,
    ) -> "RuleSet":
        """All is allowed because of what a robots fetch came to; `cause` is the access's reason if not given."""
        return cls._without_file(reason, access, cause, dialect, allowed=True)

    @classmethod
    def deny_all(
        cls,
        reason: Reason,
        *,
        access: Access | None = None,
        cause: Reason | None = None,
        dialect: Dialect = RFC9309,
    ) -> "RuleSet":
        """All is denied but /robots.txt, where the dialect exempts it."""
        return cls._without_file(reason, access, cause, dialect, allowed=False)

    @classmethod
    def _without_file(
        cls, reason: Reason, access: Access | None, cause: Reason | None, dialect: Dialect, *, allowed: bool
    ) -> "RuleSet":
        rules = cls((), group=None, dialect=dialect)
        rules.access = access
        rules.cause = access.reason if cause is None and access is not None else cause
        rules._otherwise = allowed
        rules._reason = reason
        return rules

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order of the file; those without a path too, which decide nothing (M2)."""
        return tuple(map(as_rule, self._lines))

    def allows(self, path: str) -> bool:
        """Whether a path, with its query and starting with "/", may be fetched. Else raises InvalidURL."""
        path = self._normal(path)
        if path == self._exempt:
            return True
        ranking = self._ranked()
        # Most paths start like no Disallow at all, and one call can tell.
        if not path.startswith(self._heads):
            return self._otherwise
        for _, pattern, line in ranking:
            if path.startswith(pattern.head) and pattern.matches(path):
                return line[0]
        return self._otherwise

    def decide(self, path: str) -> Decision:
        """The same, with its reasons."""
        normal = self._normal(path)
        if normal == self._exempt:
            return Decision(path, allowed=True, reason=Reason.ROBOTS_PATH, rule=None, _rules=self)
        for _, pattern, line in self._ranked():
            if normal.startswith(pattern.head) and pattern.matches(normal):
                return Decision(path, line[0], Reason.RULE, as_rule(line), self)
        return Decision(path, self._otherwise, self._reason, None, self)

    def matching(self, path: str) -> tuple[Rule, ...]:
        """All rules that match a path, best first."""
        return tuple(dict.fromkeys(as_rule(line) for _, _, line in self._matching(path)))

    def undefined(self, path: str) -> bool:
        """Whether only the order of a wildcard rule, which is undefined, decides between the rules that match.

        The others have an order; a wildcard rule that opposes their verdict makes it uncertain, as do two
        opposed wildcard rules alone (P3). Where ties are defined, those are certain (P2).
        """
        conflict = self.dialect.wildcard_conflict
        matching = [] if conflict is WildcardConflict.DEFINED else self._matching(path)
        if not matching:
            return False
        best = next((ranked for ranked in matching if not ranked[1].has_wildcard), matching[0])
        allows, length = best[2][0], best[1].octets
        return any(
            pattern.has_wildcard
            and line[0] != allows
            and (conflict is WildcardConflict.UNDEFINED or pattern.octets != length)
            for _, pattern, line in matching
        )

    def _normal(self, path: str) -> str:
        if path[:1] != "/":
            raise InvalidURL(path, 'a path starts with "/"', 0)
        return self._grammar.path(path)

    def _matching(self, path: str) -> list[_Ranked]:
        normal = self._normal(path)
        return [ranked for ranked in self._ranked() if ranked[1].matches(normal)]

    def _ranked(self) -> Sequence[_Ranked]:
        """The rules that have a path, by precedence: the longest first, then Allow, then the file's order.

        P1, P2 and RFC 9309, 2.2.2. Made at the first question: many files are read and never asked.
        """
        if self._ranking is None:
            ranking = [ranked for line in self._lines if line[1] for ranked in self._patterns(line)]
            ranking.sort(key=lambda ranked: ranked[0], reverse=True)  # stable, so the file's order stays
            self._heads = tuple({pattern.head for _, pattern, line in ranking if not line[0]})
            self._ranking = ranking
        return self._ranking

    def _patterns(self, line: RuleLine) -> Iterator[_Ranked]:
        for raw in self._readings(line):
            pattern = self._grammar.pattern(raw)
            yield 2 * pattern.octets + line[0], pattern, line

    def _readings(self, line: RuleLine) -> Iterable[str]:
        """The path as written; and of an allowed index page, where the dialect says so, its folder itself."""
        allows, raw, _ = line
        if allows and self.dialect.index_is_folder:
            folder, slash, page = raw.rpartition("/")
            if slash and page.startswith("index.htm"):
                return raw, f"{folder}/$"
        return (raw,)
