"""Signals: what a file says about the use of what is fetched, per agent and path, and its licences and idle parameters."""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from polite.robots import preferences
from polite.robots.agent import UserAgent
from polite.robots.dialect import Dialect
from polite.robots.groups import select_groups
from polite.robots.lines import WHITE, Field, Line, line_of, readable, rows
from polite.robots.matching.pattern import grammar
from polite.robots.sections import Sections

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE | re.ASCII)
_READERS: dict[str, Callable[[str], dict[str, bool]]] = {
    "content-signal": preferences.signals,
    "content-usage": preferences.usage,
}


_NAMES = (*_READERS, "license", "clean-param")
_LONGEST_NAME = max(map(len, _NAMES))
_NO_VALUES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Signals:
    """What a site says about the use of what it serves at one path.

    Signals are no permission to fetch. Call `decide` first: a path that may not be fetched has no preferences.

    Attributes:
        content_signal: the yes and no of Content-Signal (Content Signals policy): `search`, `ai-input`, `ai-train`.
            A missing key means that nothing was said.
        content_usage: the yes and no of Content-Usage (IETF AI Preferences, a draft): `train-ai`, `search`.
        content_signal_values: the other values of Content-Signal, in lower case, such as `{"use": "reference"}`.
    """

    content_signal: Mapping[str, bool]
    content_usage: Mapping[str, bool]
    content_signal_values: Mapping[str, str] = field(default_factory=dict)

    @property
    def search(self) -> bool | None:
        """Whether a search index may be built of it and links to it be shown, by Content-Signal."""
        return self.content_signal.get("search")

    @property
    def ai_input(self) -> bool | None:
        """Whether it may be put into a model that answers somebody, by Content-Signal."""
        return self.content_signal.get("ai-input")

    @property
    def ai_train(self) -> bool | None:
        """Whether models may be trained with it, by Content-Signal."""
        return self.content_signal.get("ai-train")

    @property
    def use(self) -> str | None:
        """How far it may be reused, by Content-Signal: "immediate", "reference" or "full".

        The first means that nothing is stored, the second that it may be indexed, excerpted and linked to. A level that
        polite does not know is returned as it is. Treat it as the strictest.
        """
        return self.content_signal_values.get("use")


class Statement(NamedTuple):
    """One Content-Signal or Content-Usage line.

    Attributes:
        field: the field's name in lower case.
        path: the path as written, or None if the line names none; the line then applies to every path.
        says: the categories with yes or no.
        line: the number of the line, 1-based.
        values: the keys of a Content-Signal line with another value, such as `use`.
    """

    field: str
    path: str | None
    says: Mapping[str, bool]
    line: int
    values: Mapping[str, str] = _NO_VALUES


class CleanParam(NamedTuple):
    """One Clean-param line: query parameters that change nothing in what is served at paths that start with `path`.

    `path` is None where the line names none. A convention of Yandex, tied to no agent.
    """

    parameters: tuple[str, ...]
    path: str | None
    line: int


class SignalSet:
    """What the groups that bind one agent say, to be asked for any path. Not to be changed.

    `statements` in the order of the file. The longest path that matches counts, and of equally long ones the strictest;
    Content-Signal and Content-Usage do not know each other (draft-ietf-aipref-attach, 3.1).
    """

    __slots__ = ("_grammar", "_ranked", "statements")

    def __init__(self, statements: Sequence[tuple[Statement, str]], dialect: Dialect) -> None:
        self.statements = tuple(statement for statement, _ in statements)
        self._grammar = grammar(dialect)
        self._ranked = [(self._grammar.pattern(raw), statement) for statement, raw in statements]

    def at(self, path: str) -> Signals:
        """The signals for a path with its query, as `RuleSet.decide` takes it."""
        normal = self._grammar.path(path)
        matching = [
            (pattern.octets if statement.path else 0, statement)
            for pattern, statement in self._ranked
            if pattern.matches(normal)
        ]
        signal, usage = (_longest(matching, field) for field in _READERS)
        return Signals(
            preferences.strictest(each.says for each in signal),
            preferences.strictest(each.says for each in usage),
            preferences.strictest_values(each.values for each in signal),
        )


def _longest(matching: Collection[tuple[int, Statement]], field: str) -> list[Statement]:
    of_field = [(length, statement) for length, statement in matching if statement.field == field]
    longest = max((length for length, _ in of_field), default=0)
    return [statement for length, statement in of_field if length == longest]


@dataclass(frozen=True, slots=True)
class SiteSignals:
    """All that one file says of this kind.

    Attributes:
        statements: each with its path as it was read, one character per octet.
        licenses: the absolute URLs of License lines (RSL 1.0), each with the number of its line.
        clean_params: tied to no group.
    """

    statements: tuple[tuple[Statement, str], ...]
    licenses: tuple[tuple[int, str], ...]
    clean_params: tuple[CleanParam, ...]

    def of_groups(self, places: "GroupLocator", dialect: Dialect) -> SignalSet:
        """The statements of the groups that bind an agent; a statement above the first group binds no agent (G3)."""
        return SignalSet([(each, raw) for each, raw in self.statements if places.bind(each.line)], dialect)

    def licenses_of(self, places: "GroupLocator") -> tuple[str, ...]:
        """The licences of those groups; if they name none, those above the first group (RSL 1.0, 4.4.2 and 4.4.3)."""
        own = tuple(url for line, url in self.licenses if places.bind(line))
        return own or tuple(url for line, url in self.licenses if places.above(line))


class GroupLocator:
    """Finds out in which group a line stands."""

    def __init__(self, sections: Sections, agent: UserAgent, dialect: Dialect) -> None:
        numbers = sections.numbers()
        self._starts = [numbers[group.start] for group in sections.groups(range(len(numbers)))]
        self._bound = {numbers[group.start] for group in select_groups(sections, agent, dialect)[1]}

    def above(self, line: int) -> bool:
        """Whether it stands above the first group."""
        return bisect_left(self._starts, line) == 0

    def bind(self, line: int) -> bool:
        """Whether it stands in a group that binds the agent."""
        return not self.above(line) and self._starts[bisect_left(self._starts, line) - 1] in self._bound


def site_signals(body: bytes, dialect: Dialect) -> SiteSignals:
    """All signals of a file. Never raises on content: what says nothing is passed over."""
    # A page of HTML is full of "fields" that are not known, and most files have none of these.
    unknown = [
        line
        for number, row in enumerate(rows(body, dialect), 1)
        if row.lstrip(WHITE)[:_LONGEST_NAME].lower().startswith(_NAMES)
        and (line := line_of(number, row, dialect)).field is Field.UNKNOWN
    ]
    return SiteSignals(
        tuple(statement for line in unknown for statement in _statement(line)),
        tuple(
            (line.number, readable(line.value))
            for line in unknown
            if _names(line, "license") and _ABSOLUTE.match(line.value)
        ),
        tuple(clean for line in unknown if _names(line, "clean-param") for clean in _clean_param(line)),
    )


def _names(line: Line, name: str) -> bool:
    return line.name.lower() == name


def _statement(line: Line) -> Iterator[tuple[Statement, str]]:
    field = line.name.lower()
    if field not in _READERS:
        return
    path, text = _path_and_text(line.value)
    says = _READERS[field](text)
    values = preferences.values(text) if field == "content-signal" else _NO_VALUES
    if says or values:
        shown = None if path is None else readable(path)
        yield Statement(field, shown, says, line.number, values), path or "/"


def _path_and_text(value: str) -> tuple[str | None, str]:
    """A value that starts with a path ends it at white space (draft-ietf-aipref-attach, 3.1)."""
    if not value.startswith("/"):
        return None, value
    ends = [end for white in " \t" if (end := value.find(white)) >= 0]
    end = min(ends, default=len(value))
    return value[:end], value[end:].strip(" \t")


def _clean_param(line: Line) -> Iterator[CleanParam]:
    """`a&b /path`; a path may hold `*`."""
    # str.split() alone would part at octets of ordinary letters too.
    names, *path = [readable(word) for word in line.value.replace("\t", " ").split(" ") if word] or [""]
    parameters = tuple(name for name in names.split("&") if name)
    if parameters:
        yield CleanParam(parameters, path[0] if path else None, line.number)
