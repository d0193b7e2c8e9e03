"""Signals: what the lines of a file state about the use of its pages: preferences, licences, parameters."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from polite.http.structured_fields import BareItem, InnerList, Item, Malformed, Token, parse_dictionary
from polite.robots.agent import UserAgent
from polite.robots.dialect import Dialect
from polite.robots.groups import Sections, select_groups
from polite.robots.lines import ABSOLUTE_URL, WHITE, Field, Line, line_of, readable, rows
from polite.robots.pattern import Pattern, grammar

_YES_NO = {"y": True, "n": False}
_SIGNALS = {"yes": True, "no": False}
_NO_WORDS = frozenset({"n", "no", "none", "false", "0"})
# The levels of `use`. An unknown level might be stricter than all of them.
_STRICTNESS = {"full": 1, "reference": 2, "immediate": 3}
_UNKNOWN_LEVEL = 4
# A label, and a value that can only mean no: what sites write for `n` or for `no`. Possessive repeats keep a match linear.
_REFUSAL = re.compile(
    r"(?<![a-z0-9_.*-])([a-z*][a-z0-9_.*-]*+)[ \t]*+[=:][ \t]*+[\"']?+(?:n|no|none|false|\?0|0)(?![a-z0-9_.*/+-])"
)


def read_usage(text: str) -> dict[str, bool]:
    """Return the yes and no of `train-ai=n, search=y` (draft-ietf-aipref-vocab-08, 6).

    The text must be a dictionary of structured fields (RFC 9651); any other text is ignored as a whole. Values other
    than y and n are ignored, and so are parameters. If a category is named twice, the last value counts.
    """
    return {
        name: _YES_NO[member.value]
        for name, member in (members_of(text) or {}).items()
        if isinstance(member, Item) and isinstance(member.value, Token) and member.value in _YES_NO
    }


def read_signal(text: str) -> dict[str, bool]:
    """Return the yes and no of `search=yes, ai-train=no` (Content Signals policy).

    Case is ignored; a malformed pair is skipped.
    """
    return strictest({name: _SIGNALS[value]} for name, value in _pairs(text) if value in _SIGNALS)


def refusals(field: str, text: str, said: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the labels that a line refuses in a form that its specification does not have, such as `train-ai=no`.

    RFC 9651 voids all of a Content-Usage with a mistake in it, so that its preferences are unknown (vocab-08, 6.5). A careful
    reader takes no permission from such a line, and still obeys each refusal that can be told.

    Args:
        field: "content-usage" or "content-signal".
        text: the value.
        said: what `read_usage` or `read_signal` returned for it.
    """
    told = tuple(name for name in dict.fromkeys(_REFUSAL.findall(text.lower())) if said.get(name, True))
    if field != "content-usage" or not told:
        return told
    if (members := members_of(text)) is None:
        return told
    items = ((name, members.get(name)) for name in told)
    return tuple(name for name, item in items if isinstance(item, Item) and _means_no(item.value))


def members_of(text: str) -> Mapping[str, Item | InnerList] | None:
    """Return the members of a Content-Usage, or None if it is void as a whole (RFC 9651, 4.2)."""
    try:
        return parse_dictionary(text)
    except Malformed:
        return None


def _means_no(value: BareItem) -> bool:
    # 0 and ?0 are equal.
    return value == 0 or (isinstance(value, str) and value.lower() in _NO_WORDS)


def read_values(text: str) -> dict[str, str]:
    """Return the other values of a Content-Signal line, such as `use=reference`, in lower case."""
    return strictest_values({name: value} for name, value in _pairs(text) if value and value not in _SIGNALS)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in readable(text).lower().split(","):
        name, _, value = pair.partition("=")
        if name := name.strip():
            yield name, value.strip()


def strictest(statements: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """Merge statements: a single no is enough (draft-ietf-aipref-vocab-08, 5.1)."""
    merged: dict[str, bool] = {}
    for statement in statements:
        for name, allowed in statement.items():
            merged[name] = merged.get(name, True) and allowed
    return merged


def strictest_values(statements: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge statements: the strictest value of `use`, and the first value of any other key.

    Of `use`, immediate is stricter than reference, and reference than full.
    """
    merged: dict[str, str] = {}
    strictness = _STRICTNESS.get
    for statement in statements:
        for name, value in statement.items():
            known = merged.setdefault(name, value)
            if name == "use" and strictness(value, _UNKNOWN_LEVEL) > strictness(known, _UNKNOWN_LEVEL):
                merged[name] = value
    return merged


_READERS = {"content-signal": read_signal, "content-usage": read_usage}
SIGNAL_FIELDS = (*_READERS, "license", "clean-param")
_LONGEST_NAME = max(map(len, SIGNAL_FIELDS))
_NO_VALUES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Signals:
    """What a site states about the use of what it serves at one path.

    Signals are no permission to fetch. Call `decide` first: a path that may not be fetched has no preferences.

        >>> from polite import parse
        >>> robots = parse("User-agent: *\\nContent-Signal: search=yes, ai-train=no")
        >>> signals = robots.signals("ExampleBot", "https://example.com/a")
        >>> signals.search, signals.ai_train, signals.ai_input
        (True, False, None)

    Attributes:
        content_signal: the yes and no of Content-Signal (Content Signals policy, September 2025): `search`, `ai-input`, `ai-train`.
            A missing key means that nothing was stated.
        content_usage: the yes and no of Content-Usage (draft-ietf-aipref-vocab-08, September 2026): `train-ai`, `ai-use`,
            `search`, or whatever label a line has.
        content_signal_values: the other values of Content-Signal, in lower case, such as `{"use": "reference"}`.
    """

    content_signal: Mapping[str, bool]
    content_usage: Mapping[str, bool]
    content_signal_values: Mapping[str, str] = field(default_factory=dict)

    @property
    def search(self) -> bool | None:
        """Whether the page may be in a search index with a link to it, by Content-Signal."""
        return self.content_signal.get("search")

    @property
    def ai_input(self) -> bool | None:
        """Whether the page may be input of a model that generates an answer, by Content-Signal."""
        return self.content_signal.get("ai-input")

    @property
    def ai_train(self) -> bool | None:
        """Whether models may be trained with the page, by Content-Signal."""
        return self.content_signal.get("ai-train")

    @property
    def use(self) -> str | None:
        """How far the page may be reused, by Content-Signal: "immediate", "reference" or "full".

        "immediate" means that nothing is stored, "reference" that it may be indexed, excerpted and linked to. An unknown
        level is returned as it is. Treat it as the strictest.
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
        text: the line's value as written.
        refuses: the categories that the line refuses in no valid syntax, such as `train-ai=no`. `Signals` leaves them out;
            `polite.usage` counts them. A line of nothing else has neither `says` nor `values`.
    """

    field: str
    path: str | None
    says: Mapping[str, bool]
    line: int
    values: Mapping[str, str] = _NO_VALUES
    text: str = ""
    refuses: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether the line says something in valid syntax."""
        return bool(self.says or self.values)

    def only_refusals(self) -> "Statement":
        """Return the line with nothing but the categories that it refuses. No part of the public API."""
        refused = tuple(name for name, allowed in self.says.items() if not allowed)
        return self._replace(says={}, values=_NO_VALUES, refuses=(*refused, *self.refuses))

    def __reduce__(self) -> tuple[object, ...]:
        # A mapping proxy cannot be pickled.
        return Statement, (*self[:4], dict(self.values), *self[5:])


# A line that matches a path, with the length of its own path in octets.
_Ranked = tuple[int, Statement]
# Statements with their paths as read, one character per octet; and pairs of line and URL.
_Lines = Sequence[tuple[Statement, str]]
_Licenses = tuple[tuple[int, str], ...]
_ByPattern = Sequence[tuple[Pattern, Sequence[Statement]]]


class CleanParam(NamedTuple):
    """One Clean-param line: query parameters that do not change what is served.

    A convention of Yandex. It applies to all agents.

        >>> from polite import parse
        >>> parse("Clean-param: ref&utm_source /shop/").clean_params
        (CleanParam(parameters=('ref', 'utm_source'), path='/shop/', line=1),)

    Attributes:
        parameters: the names of the parameters.
        path: the start of the paths it applies to, or None if the line names none.
        line: the number of the line, 1-based.
    """

    parameters: tuple[str, ...]
    path: str | None
    line: int


class SignalSet:
    """The signals of the groups that bind one agent, for any path. Immutable.

    The longest matching path decides; of equally long ones, the strictest. Content-Signal and Content-Usage are
    independent (draft-ietf-aipref-attach-05, 3.1).

        >>> from polite import parse
        >>> signals = parse("User-agent: *\\nContent-Usage: /news/ train-ai=n").signals_for("ExampleBot")
        >>> dict(signals.at("/news/today").content_usage), dict(signals.at("/about").content_usage)
        ({'train-ai': False}, {})

    Attributes:
        statements: the lines, in the order of the file.
        above: the lines above the first group, which bind no agent (G3).
        licenses: the License lines that apply: pairs of line and URL.
    """

    __slots__ = ("_above", "_grammar", "_ranked", "above", "licenses", "statements")

    def __init__(self, statements: _Lines, above: _Lines, licenses: _Licenses, dialect: Dialect) -> None:
        self.statements: tuple[Statement, ...] = tuple(statement for statement, _ in statements)
        self.above: tuple[Statement, ...] = tuple(statement for statement, _ in above)
        self.licenses: _Licenses = licenses
        self._grammar = grammar(dialect)
        self._ranked = self._by_pattern(statements)
        self._above = self._by_pattern([(each.only_refusals(), raw) for each, raw in above])

    def at(self, path: str) -> Signals:
        """Return the signals for a path with query, as `RuleSet.decide` takes it."""
        matching = self._matching(path, self._ranked)
        signal, usage = (_longest(matching, field)[0] for field in _READERS)
        signals, usages = (strictest(each.says for each in lines) for lines in (signal, usage))
        return Signals(signals, usages, strictest_values(each.values for each in signal))

    def read_with_care(self, path: str) -> list[Statement]:
        """Return the lines that a careful reader obeys at a path: those of `at`, and lines that refuse something.

        A line that is in no valid syntax counts unless a valid line has a longer path, and a line above the first group unless
        a valid line applies. Nothing but the refusals of these lines is kept. No part of the public API.
        """
        matching = self._matching(path, self._ranked)
        above = self._matching(path, self._above)
        return [each for field in _READERS for each in _careful(matching, above, field)]

    def _by_pattern(self, lines: _Lines) -> _ByPattern:
        """Group lines by their paths, and leave out those that only repeat others: a hostile file is full of them."""
        of_paths: dict[str, list[Statement]] = {}
        for statement, raw in lines:
            of_paths.setdefault(raw, []).append(statement)
        return [(self._grammar.pattern(raw), tuple(_different(same))) for raw, same in of_paths.items()]

    def _matching(self, path: str, lines: _ByPattern) -> list[_Ranked]:
        """Return the lines that match a path, in the order of the file."""
        normal = self._grammar.path(path)
        found = [
            (pattern.octets if each.path else 0, each)
            for pattern, statements in lines
            if pattern.matches(normal)
            for each in statements
        ]
        return sorted(found, key=lambda ranked: ranked[1].line)


def _different(lines: Iterable[Statement]) -> Iterator[Statement]:
    """Iterate over the lines, all of one path, that say something that no line before says."""
    known: set[tuple[object, ...]] = set()
    for each in lines:
        # A line counts by its syntax, and by whether it has a path.
        kind = (each.field, each.path is None, each.counts)
        says = (*each.says.items(), *each.values.items(), *((label, None) for label in each.refuses))
        said = {(*kind, *one) for one in says}
        if not said <= known:
            known |= said
            yield each


def _longest(matching: Collection[_Ranked], field: str) -> tuple[list[Statement], int]:
    """Return the lines of a field that count, those of the longest path, and its length."""
    of_field = [(length, each) for length, each in matching if each.field == field and each.counts]
    longest = max((length for length, _ in of_field), default=0)
    return [statement for length, statement in of_field if length == longest], longest


def _careful(matching: Collection[_Ranked], above: Collection[_Ranked], field: str) -> Iterator[Statement]:
    counting, longest = _longest(matching, field)
    yield from counting
    doubtful = [each for length, each in matching if not each.counts and length >= longest]
    for each in doubtful if counting else [*doubtful, *(each for _, each in above)]:
        if each.field == field:
            yield each


@dataclass(frozen=True, slots=True)
class SiteSignals:
    """All signals of one file.

    Attributes:
        statements: each with its path as read, one character per octet.
        licenses: the absolute URLs of License lines (RSL 1.0), each with the number of its line.
        clean_params: the Clean-param lines.
    """

    statements: tuple[tuple[Statement, str], ...]
    licenses: tuple[tuple[int, str], ...]
    clean_params: tuple[CleanParam, ...]

    def bound(self, sections: Sections, agent: UserAgent, dialect: Dialect) -> SignalSet:
        """Return the signals of the groups that bind an agent.

        A statement above the first group binds no agent (G3). License lines of these groups replace those above the first
        group (RSL 1.0, 4.4.2 and 4.4.3).
        """
        numbers = sections.numbers()
        starts = [numbers[group.start] for group in sections.groups(range(len(numbers)))]
        binding = {numbers[group.start] for group in select_groups(sections, agent, dialect)[1]}

        def above(line: int) -> bool:
            return bisect_left(starts, line) == 0

        def binds(line: int) -> bool:
            return not above(line) and starts[bisect_left(starts, line) - 1] in binding

        own = tuple(license_ for license_ in self.licenses if binds(license_[0]))
        return SignalSet(
            [(each, raw) for each, raw in self.statements if binds(each.line)],
            [(each, raw) for each, raw in self.statements if above(each.line)],
            own or tuple(license_ for license_ in self.licenses if above(license_[0])),
            dialect,
        )


def site_signals(body: bytes, dialect: Dialect) -> SiteSignals:
    """Return all signals of a file. Never raises on content; lines without meaning are skipped."""
    # A page of HTML is full of unknown "fields", and most files have no signals.
    unknown = [
        line
        for number, row in enumerate(rows(body, dialect), 1)
        if row.lstrip(WHITE)[:_LONGEST_NAME].lower().startswith(SIGNAL_FIELDS)
        and (line := line_of(number, row, dialect)).field is Field.UNKNOWN
    ]
    return SiteSignals(
        tuple(statement for line in unknown for statement in _statement(line)),
        tuple(
            (line.number, readable(line.value))
            for line in unknown
            if line.name.lower() == "license" and ABSOLUTE_URL.match(line.value)
        ),
        tuple(
            clean for line in unknown if line.name.lower() == "clean-param" for clean in _clean_param(line)
        ),
    )


def _statement(line: Line) -> Iterator[tuple[Statement, str]]:
    field = line.name.lower()
    if field not in _READERS:
        return
    path, text = path_and_text(line.value)
    says = _READERS[field](text)
    values = read_values(text) if field == "content-signal" else _NO_VALUES
    refuses = refusals(field, text, says)
    if says or values or refuses:
        shown = None if path is None else readable(path)
        written = readable(line.value)
        yield Statement(field, shown, says, line.number, values, written, refuses), path or "/"


def path_and_text(value: str) -> tuple[str | None, str]:
    """Split a value that starts with a path at white space (draft-ietf-aipref-attach-05, 3.1)."""
    if not value.startswith("/"):
        return None, value
    ends = [end for white in " \t" if (end := value.find(white)) >= 0]
    end = min(ends, default=len(value))
    return value[:end], value[end:].strip(" \t")


def _clean_param(line: Line) -> Iterator[CleanParam]:
    """Parse `a&b /path`. A path may contain `*`."""
    # str.split() alone would also split at octets of ordinary letters.
    names, *path = [readable(word) for word in line.value.replace("\t", " ").split(" ") if word] or [""]
    parameters = tuple(name for name in names.split("&") if name)
    if parameters:
        yield CleanParam(parameters, path[0] if path else None, line.number)
