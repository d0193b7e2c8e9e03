"""Grid: the decisions about a batch of URLs for all agents, each different verdict held once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from polite.cli.matrix.lists import Column, Row
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision, Rule
from polite.robots.reason import Reason
from polite.robots.rules import RuleSet

# Cells that are decided before they are printed: 8 octets each, for a list of many agents.
MAX_CELLS = 500_000
_MAX_ROWS = 10_000


class Verdict(NamedTuple):
    """A decision without its path. Attributes are those of `Decision`."""

    allowed: bool
    reason: Reason
    cause: Reason | None
    rule: Rule | None
    undefined: bool

    def __str__(self) -> str:
        verdict = "allowed" if self.allowed else "disallowed"
        return f"{verdict}: {self.reason.value}" if self.rule is None else f"{verdict} by {self.rule}"


class Grid:
    """The verdicts of a batch.

    Attributes:
        columns: the agents.
        rows: the URLs.
    """

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Row], rules_for: Callable[[UserAgent | None], RuleSet]
    ) -> None:
        self.columns = columns
        self.rows = rows
        self._known: dict[Verdict, Verdict] = {}
        self._verdicts: list[list[Verdict]] = []
        decided: RuleSet | None = None
        for column in columns:
            rules = rules_for(column.agent)
            # Agents of the same group share the rules, and their column.
            self._verdicts.append(self._verdicts[-1] if rules is decided else list(self._decided(rules)))
            decided = rules

    def cell(self, row: int, column: int) -> Verdict:
        """Return a verdict."""
        return self._verdicts[column][row]

    def verdicts(self) -> Iterable[Verdict]:
        """Return the different verdicts."""
        return self._known

    def _decided(self, rules: RuleSet) -> Iterator[Verdict]:
        for row in self.rows:
            verdict = _verdict(rules.decide(row.path))
            yield self._known.setdefault(verdict, verdict)


def batch_rows(columns: int) -> int:
    """Return the limit on URLs in a batch for so many agents."""
    return max(1, min(_MAX_ROWS, MAX_CELLS // columns))


def _verdict(decision: Decision) -> Verdict:
    return Verdict(decision.allowed, decision.reason, decision.cause, decision.rule, decision.undefined)
