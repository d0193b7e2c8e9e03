"""Signals: what a file says about the use of what is fetched, per agent and path, and its licences and idle parameters."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from polite.robots import preferences
from polite.robots.agent import UserAgent
from polite.robots.dialect import Dialect
from polite.robots.group import Group
from polite.robots.lines import Field, Line, lines, readable
from polite.robots.pattern import grammar

_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE | re.ASCII)
_READERS: dict[str, Callable[[str], dict[str, bool]]] = {
    "content-signal": preferences.signals,
    "content-usage": preferences.usage,
}


@dataclass(frozen=True, slots=True)
class Signals:
    """What a site wishes, or does not wish, to be done with what it serves at one path.

    `content_signal`: by the Content Signals policy: `search`, `ai-input`, `ai-train`. `content_usage`: by the IETF's AI
    Preferences: `train-ai`, `search`, ... True and False are what is said; of what is missing nothing is said.
    They are no permission to fetch: ask `decide` first, since a path that may not be fetched has no preferences.
    """

    content_signal: Mapping[str, bool]
    content_usage: Mapping[str, bool]

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


class Statement(NamedTuple):
    """One Content-Signal or Content-Usage line: its field in lower case, what it says, where, and its line, 1-based.

    `path` is as written, and None where the line names none: it then holds everywhere.
    """

    field: str
    path: str | None
    says: Mapping[str, bool]
    line: int


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
        return Signals(*(_longest(matching, field) for field in _READERS))


def _longest(matching: Collection[tuple[int, Statement]], field: str) -> dict[str, bool]:
    of_field = [(length, statement.says) for length, statement in matching if statement.field == field]
    longest = max((length for length, _ in of_field), default=0)
    return preferences.strictest(says for length, says in of_field if length == longest)


@dataclass(frozen=True, slots=True)
class SiteSignals:
    """All that one file says of this kind. `licenses`: RSL's absolute URLs, as written. They and `clean_params` bind all.

    `statements`: each with its path as it was read, one character per octet.
    """

    statements: tuple[tuple[Statement, str], ...]
    licenses: tuple[str, ...]
    clean_params: tuple[CleanParam, ...]

    def of_groups(self, groups: Sequence[Group], bound: Collection[Group], dialect: Dialect) -> SignalSet:
        """Those of the `bound` ones among the file's groups; what stands above the first group is nobody's (G3)."""
        theirs = {group.lines[0] for group in bound}
        starts = [group.lines[0] for group in groups]
        mine: list[tuple[Statement, str]] = []
        group = -1
        for statement, raw in self.statements:
            while group + 1 < len(starts) and starts[group + 1] < statement.line:
                group += 1
            if group >= 0 and starts[group] in theirs:
                mine.append((statement, raw))
        return SignalSet(mine, dialect)


def site_signals(body: bytes, dialect: Dialect) -> SiteSignals:
    """All signals of a file. Never raises on content: what says nothing is passed over."""
    unknown = [line for line in lines(body, dialect) if line.field is Field.UNKNOWN]
    return SiteSignals(
        tuple(statement for line in unknown for statement in _statement(line)),
        tuple(
            readable(line.value)
            for line in unknown
            if _names(line, "license") and _ABSOLUTE.match(line.value)
        ),
        tuple(clean for line in unknown if _names(line, "clean-param") for clean in _clean_param(line)),
    )


def binding(groups: Iterable[Group], agent: UserAgent, name: str | None, dialect: Dialect) -> list[Group]:
    """The groups that bind an agent which was found under `name`: `RuleSet.group`."""
    if name is None:
        return []
    found = [group for group in groups if (group.names_everyone() if name == "*" else group.names(name))]
    return found if dialect.combines_groups else found[:1]


def _names(line: Line, name: str) -> bool:
    return line.name.lower() == name


def _statement(line: Line) -> Iterator[tuple[Statement, str]]:
    field = line.name.lower()
    if field not in _READERS:
        return
    path, text = None, line.value
    if text.startswith("/"):
        path, *rest = text.replace("\t", " ").split(" ", 1)
        text = "".join(rest).strip(" ")
    says = _READERS[field](text)
    if says:
        yield Statement(field, None if path is None else readable(path), says, line.number), path or "/"


def _clean_param(line: Line) -> Iterator[CleanParam]:
    """`a&b /path`; a path may hold `*`."""
    # str.split() alone would part at octets of ordinary letters too.
    names, *path = [readable(word) for word in line.value.replace("\t", " ").split(" ") if word] or [""]
    parameters = tuple(name for name in names.split("&") if name)
    if parameters:
        yield CleanParam(parameters, path[0] if path else None, line.number)
