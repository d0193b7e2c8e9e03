"""Rereading: what a file says to one agent in many dialects; equal readings are read once."""

from collections.abc import Callable
from dataclasses import replace

from polite.robots.agent import UserAgent
from polite.robots.dialect import RFC9309, Dialect
from polite.robots.groups import rules_of, select_groups
from polite.robots.matching.ranking import Reading
from polite.robots.rules import RuleSet
from polite.robots.sections import Sections

# Fields that change how paths compare, which groups bind an agent, and the text that is read. None of them changes where a given
# text is cut. A field that is missing here costs time and changes no result.
_COMPARE = {
    "decodes_unreserved",
    "dollar_is_both",
    "escaped_slash_differs",
    "excluded_equal_escapes",
    "exempts_robots_txt",
    "has_wildcards",
    "index_is_folder",
    "normalises_urls",
    "reserved_equal_escapes",
    "specials_equal_escapes",
    "supplies_slash",
    "wildcard_conflict",
}
_CHOOSE = {"combines_groups", "derives_general_names", "lettered_names_only"}
_TEXT = {"max_bytes", "max_line_bytes", "nul_ends_line", "reads_utf16", "skips_partial_bom"}
_SAME_CUT = {field: getattr(RFC9309, field) for field in sorted(_COMPARE | _CHOOSE | _TEXT)} | {"name": ""}


class Rereading:
    """Caches the sections of each text, the rules of each selection of groups, and each verdict."""

    def __init__(self, text: Callable[[Dialect], str], agent: UserAgent) -> None:
        """Start without cached results.

        Args:
            text: returns the text of all lines that count in a dialect.
            agent: the agent.
        """
        self._text = text
        self._agent = agent
        self._sections: dict[tuple[str, Dialect], Sections] = {}
        self._select: dict[tuple[int, tuple[str, ...], bool], tuple[str | None, list[range]]] = {}
        self._rules: dict[tuple[int, tuple[range, ...]], RuleSet] = {}
        self._verdicts: dict[tuple[Reading, bool], bool] = {}

    def sections(self, dialect: Dialect) -> Sections:
        text, cut = self._text(dialect), replace(dialect, **_SAME_CUT)
        sections = self._sections.get((text, cut))
        if sections is None:
            sections = self._sections[text, cut] = Sections(text, dialect)
        return sections

    def allows(self, dialect: Dialect, path: str) -> bool:
        """Return what `Robots.rules_for(agent).allows(path)` returns in this dialect."""
        rules = self._read(dialect)
        key = rules.reading(path)
        if key not in self._verdicts:
            self._verdicts[key] = rules.allows_once(path)
        return self._verdicts[key]

    def _read(self, dialect: Dialect) -> RuleSet:
        sections = self.sections(dialect)
        choice = id(sections), self._agent.names(dialect), dialect.combines_groups
        if choice not in self._select:
            self._select[choice] = select_groups(sections, self._agent, dialect)
        name, bound = self._select[choice]
        below = id(sections), tuple(bound)
        if below not in self._rules:
            self._rules[below] = rules_of(sections, bound, name, dialect)
        return self._rules[below].read_as(dialect)
