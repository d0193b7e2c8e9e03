"""Sections: where the user-agent lines of a file stand, and the rules and paces that stand below them."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from polite.robots.dialect import Dialect
from polite.robots.lines import WHITE, Field, Fields, fields_of

_RULES = frozenset({Field.ALLOW, Field.DISALLOW})
_PACES = frozenset({Field.CRAWL_DELAY, Field.REQUEST_RATE, Field.VISIT_TIME})
# What stands in no group, and ends none (G6); a line without a field says nothing.
_APART = frozenset({Field.SITEMAP, Field.HOST, Field.NONE, Field.USER_AGENT})


# So many octets are split into rows by one call: other threads, an event loop's among them, wait for it.
_AT_A_TIME = 65_536


class FieldLine(NamedTuple):
    """A line of one field: where it starts in the file's text, where it ends, and its value, a character per octet."""

    start: int
    end: int
    value: str


class GroupLines(NamedTuple):
    """What stands below a group's user-agent lines: the rules' paths, for each its line doubled plus one for an Allow,
    and Crawl-delay, Request-rate and Visit-time as field and value. Texts have one character per octet.
    """

    paths: list[str]
    marks: "array[int]"
    paces: list[tuple[Field, str]]


class Sections:
    """A file cut at its user-agent lines, and only there: what stands between is read when somebody is bound by it.

    Most of a file's groups are for other crawlers, and many a large "file" is a page of HTML.
    """

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text
        self._dialect = dialect
        self._fields = fields_of(dialect)
        self.agents = list(field_lines(text, Field.USER_AGENT, self._fields))

    def groups(self, of: Iterable[int]) -> Iterator[range]:
        """The groups that hold these user-agent lines (their places, in order), each as the places of its lines."""
        stop = 0
        for place in of:
            if place < stop:
                continue
            start = place
            while start > stop and not self._separated(start - 1):
                start -= 1
            stop = place + 1
            while stop < len(self.agents) and not self._separated(stop - 1):
                stop += 1
            yield range(start, stop)

    def below(self, groups: Iterable[range]) -> GroupLines:
        """What these groups say, together; they come in the order of the file."""
        together = GroupLines([], array("I"), [])
        for _ in self._read(groups, lambda: together):
            pass
        return together

    def each_below(self, groups: Iterable[range]) -> Iterator[GroupLines]:
        """What each of these groups says; they come in the order of the file."""
        return self._read(groups, lambda: GroupLines([], array("I"), []))

    def _read(self, groups: Iterable[range], into: Callable[[], GroupLines]) -> Iterator[GroupLines]:
        number, counted = 1, 0
        for group in groups:
            start, stop = self.agents[group.start].end, self._start(group.stop)
            number += self._text.count("\n", counted, start)
            counted = start
            below = into()
            # The first row is the empty rest of the user-agent line.
            while start <= stop:
                end = stop if stop - start <= _AT_A_TIME else self._text.find("\n", start + _AT_A_TIME, stop)
                end = stop if end < 0 else end
                _read(self._text[start:end], number, self._fields, self._dialect, below)
                number += self._text.count("\n", start, end + 1)
                start = end + 1
            counted = start
            yield below

    def numbers(self) -> list[int]:
        """The line of each user-agent line, 1-based."""
        found: list[int] = []
        number, counted = 1, 0
        for start, _, _ in self.agents:
            number += self._text.count("\n", counted, start)
            counted = start
            found.append(number)
        return found

    def _start(self, place: int) -> int:
        return self.agents[place].start if place < len(self.agents) else len(self._text)

    def _separated(self, place: int) -> bool:
        """Whether the user-agent line behind this one starts another group (G1, G2)."""
        start, stop = self.agents[place].end + 1, self.agents[place + 1].start - 1
        if start > stop:
            return False
        text = self._text
        while start <= stop:
            end = text.find("\n", start, stop)
            end = stop if end < 0 else end
            if self._parts(text[start:end]):
                return True
            start = end + 1
        return self._dialect.blank_line_separates and self._blank_before(self.agents[place + 1].start - 1)

    def _parts(self, row: str) -> bool:
        field, _ = self._fields.read(row)
        return field in _RULES or (self._dialect.any_field_ends_agents and field not in _APART)

    def _blank_before(self, stop: int) -> bool:
        """Whether the last line before, but for comments, is a blank one."""
        text = self._text
        while True:
            start = text.rfind("\n", 0, stop) + 1
            row = text[start:stop].strip(WHITE)
            if not row.startswith("#"):
                return not row
            stop = start - 1


def field_lines(text: str, of: Field, fields: Fields) -> Iterator[FieldLine]:
    """Every line of a field, user-agent, Sitemap or Host. Its names start alike, and nothing looks for a text as fast as `find`."""
    start_of_field, names = fields.starts[of]
    # Octets, since lower() of a text knows more letters than ASCII has.
    lower = text.encode("latin-1").lower()
    at = lower.find(start_of_field)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if lower.startswith(names, at) and (start == at or not text[start:at].strip(WHITE)):
            field, value = fields.read(text[at:end])
            if field is of:
                # What a NamedTuple makes of its arguments, without its call: a file may have a thousand.
                yield _field_line(FieldLine, (start, end, value))
        at = lower.find(start_of_field, end + 1)


_field_line = tuple.__new__


def _read(text: str, number: int, fields: Fields, dialect: Dialect, below: GroupLines) -> None:
    """Add what the rows of the text say to `below`; the first has this number."""
    paths, marks, paces = below
    found: list[int] = []
    disallow, allow, none = Field.DISALLOW, Field.ALLOW, Field.NONE
    has_comments, forgiving = "#" in text, dialect.colon_optional
    colonless = fields.colonless
    mark = 2 * number
    for row in text.split("\n"):
        name, colon, value = row.partition(":")
        field = fields[name] if colon else none
        if field is none and forgiving and row and colonless(row):
            field, value = fields.read(row)
        if field is disallow or field is allow:
            if has_comments and "#" in value:
                value = value.partition("#")[0]
            paths.append(value.strip(WHITE))
            found.append(mark if field is disallow else mark + 1)
        elif field in _PACES:
            paces.append((field, fields.read(row)[1]))
        mark += 2
    marks.extend(found)
