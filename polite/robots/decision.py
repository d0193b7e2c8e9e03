"""Decision: whether a path may be fetched, by which rule, and why; and the errors that carry one."""

from dataclasses import FrozenInstanceError
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn, Protocol

from polite.errors import PoliteError, redact_url
from polite.robots.lines import readable
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Unreachable


class Rule(NamedTuple):
    """One Allow or Disallow line.

        >>> Rule(allows=False, pattern="/private/", line=2)
        Rule(allows=False, pattern='/private/', line=2)
        >>> print(Rule(allows=False, pattern="/private/", line=2))
        Disallow: /private/ (line 2)

    Attributes:
        allows: whether it is an Allow.
        pattern: the path as written; octets that are not UTF-8 show as `\\xNN`.
        line: the number of the line, 1-based.
    """

    allows: bool
    pattern: str
    line: int

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {redact_url(self.pattern)} (line {self.line})"


# A rule as read: whether it allows, its path with one character per octet, and its line.
RuleLine = tuple[bool, str, int]


def to_rule(line: RuleLine) -> Rule:
    """Return the rule with a readable path."""
    return Rule(line[0], readable(line[1]), line[2])


class Decider(Protocol):
    """The source of a decision, which works out rarely used details on request."""

    @property
    def access(self) -> FetchResult | None:
        """The result of the robots fetch if it alone allows or denies everything, else None."""

    @property
    def cause(self) -> Reason | None:
        """Why the robots fetch had that result, or None."""

    def matching(self, path: str) -> tuple[Rule, ...]:
        """Return all rules that match a path, the strongest first."""

    def undefined(self, path: str) -> bool:
        """Return whether the verdict about a path depends on the undefined order of a wildcard rule (P3)."""

    def conflict(self, path: str) -> Rule | None:
        """Return the strongest rule against an undefined verdict about a path, or None."""


class _Outcome(NamedTuple):
    """The Decider of a decision that outlives its rules."""

    access: FetchResult | None
    cause: Reason | None
    said: str = ""

    def matching(self, path: str) -> tuple[Rule, ...]:
        return ()

    def undefined(self, path: str) -> bool:
        return False

    def conflict(self, path: str) -> Rule | None:
        return None


class _Fields(NamedTuple):
    path: str
    allowed: bool
    reason: Reason
    rule: Rule | None
    decider: Decider


# Hot path: a tuple, since a frozen dataclass takes four times as long to make, and one is made for each decision.
class Decision(_Fields):
    """Whether a path may be fetched, by which rule, and why.

    True if the path may be fetched. Frozen. Decisions are equal if path, verdict, reason and rule are equal.

        >>> from polite import parse
        >>> decision = parse("User-agent: *\\nDisallow: /private/").decide("ExampleBot", "https://example.com/private/a")
        >>> bool(decision)
        False
        >>> print(decision)
        disallowed by Disallow: /private/ (line 2)

    Attributes:
        path: the path and query that was decided about.
        allowed: the verdict.
        reason: what decided.
        rule: the rule that decided, or None.
        decider: the rule set that decided.
    """

    __slots__ = ()

    def __bool__(self) -> bool:
        return self.allowed

    def __eq__(self, other: object) -> bool:
        return _compared(self) == _compared(other) if isinstance(other, Decision) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    @property
    def access(self) -> FetchResult | None:
        """The result of the robots fetch if it alone allows or denies everything, else None."""
        return self.decider.access

    @property
    def cause(self) -> Reason | None:
        """Why the robots fetch had that result, or None."""
        return self.decider.cause

    @property
    def overruled(self) -> tuple[Rule, ...]:
        """The other rules that match the path, the strongest first. Computed on each access."""
        matching = self.decider.matching(self.path)
        return tuple(rule for rule in matching if rule != self.rule)

    @property
    def undefined(self) -> bool:
        """Whether the dialect's document leaves the order of a wildcard rule undefined here (P3).

        Computed on each access by trying each rule. `str(decision)` names the conflict only if that is quick.
        """
        return self.reason is Reason.RULE and self.decider.undefined(self.path)

    def without_rules(self) -> "Decision":
        """Return the same decision without the rule set, which may be large: `overruled` is empty, and `undefined` False."""
        said = self.decider.said if isinstance(self.decider, _Outcome) else ""
        return Decision(
            self.path, self.allowed, self.reason, self.rule, _Outcome(self.access, self.cause, said)
        )

    @classmethod
    def by_operator(cls, path: str, said: str) -> "Decision":
        """Return the decision of an operator's order about a path.

        Args:
            path: The path and query.
            said: What the order says.
        """
        return cls(path, allowed=False, reason=Reason.OPERATOR, rule=None, decider=_Outcome(None, None, said))

    def __str__(self) -> str:
        verdict = "allowed" if self.allowed else "disallowed"
        if self.rule is None:
            access, detail = self.access, ""
            if isinstance(access, Unreachable) and access.reason is Reason.INTERNAL_ERROR:
                # What a transport raised, or returned that is nonsense: a defect of this program, which its user can mend.
                detail = f": {access.detail}"
            reason = self.reason.value
            if self.cause is not None and not self.cause.may_pass:
                reason = reason.replace("for now", f"until {self.cause.option} changes")
            if isinstance(self.decider, _Outcome) and self.decider.said:
                reason = self.decider.said
            because = "" if self.cause is None else f"{self.cause.value}{detail}; "
            return f"{verdict}: {because}{reason}"
        opposed = self.decider.conflict(self.path) if self.reason is Reason.RULE else None
        conflict = "" if opposed is None else f", whose conflict with {opposed} is undefined"
        return f"{verdict} by {self.rule}{conflict}"

    def __repr__(self) -> str:
        return f"<Decision {redact_url(self.path)}: {self}>"


_compared = itemgetter(0, 1, 2, 3)


class Disallowed(PoliteError):
    """robots.txt disallows the URL. Raised by `Gate.permit` instead of giving a permit.

        >>> from polite import parse
        >>> decision = parse("User-agent: *\\nDisallow: /").decide("ExampleBot", "https://example.com/a")
        >>> print(Disallowed(decision, url="https://example.com/a"))
        https://example.com/a: disallowed by Disallow: / (line 2)

    Attributes:
        decision: which rule disallows it, or why without a rule.
        url: the URL, without credentials.
    """

    url: str

    def __init__(self, decision: Decision, *, url: str) -> None:
        super().__init__("", url=url)
        self.args: tuple[Any, ...] = (decision,)
        self.decision = decision

    def __str__(self) -> str:
        # Formatted on demand: a crawl refuses millions of URLs, and some dialects try many rules for the text.
        return f"{self.url}: {self.decision}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with `args` alone. A pool of processes breaks if a worker's error cannot be read.
        return _without_init, (type(self), self.decision), vars(self)


def _without_init(kind: type[Disallowed], decision: Decision) -> Disallowed:
    return kind.__new__(kind, decision)


class RobotsUnreachable(Disallowed):
    """robots.txt could not be fetched, so every URL is disallowed for now (RFC 9309, 2.3.1.4).

        >>> from polite import Reason
        >>> from polite.robots.rules import RuleSet
        >>> decision = RuleSet.deny_all(Reason.UNREACHABLE).decide("/a")
        >>> RobotsUnreachable(decision, url="https://example.com/a", retry_after_s=5.0).retry_after_s
        5.0

    Attributes:
        retry_after_s: seconds until robots.txt may be fetched again. The gate fetches it at the next request after that.
    """

    def __init__(self, decision: Decision, *, url: str, retry_after_s: float) -> None:
        super().__init__(decision, url=url)
        self.retry_after_s = retry_after_s
