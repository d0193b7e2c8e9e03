"""A tidy text of a file that decides as the file does."""

import re
from collections.abc import Collection, Iterator

from polite.robots.dialect import Dialect
from polite.robots.encoding import looks_marked, readable_body
from polite.robots.lines import Field, Line, lines, octets, readable, rows

_RULES = {Field.ALLOW, Field.DISALLOW}
# What `surrogateescape` makes of an octet that is not UTF-8.
_STRAY = re.compile("[\udc80-\udcff]")


def to_text(body: bytes, dialect: Dialect, group_starts: Collection[int]) -> str:
    """Return what a dialect reads in a file: its fields, values and groups, without comments.

    Read in the same dialect, the text decides as the file does for each agent and path. Octets that are not UTF-8
    become escapes, three characters each. If that would make a line longer than `dialect.max_line_bytes`, the line
    keeps its length; if it would make the file longer than `dialect.max_bytes`, all lines do. Such octets are then lone
    surrogates, as in Python's error handler "surrogateescape".

    Args:
        body: the file.
        dialect: how it is read.
        group_starts: the numbers of the lines that begin a group.
    """
    effective = _effective_lines(body, dialect)
    tidy = _text(effective, dialect, group_starts, tidy=True)
    if len(octets(tidy)) < dialect.max_bytes:
        return tidy
    return _text(effective, dialect, group_starts, tidy=False)


def _effective_lines(body: bytes, dialect: Dialect) -> list[Line]:
    effective = [line for line in lines(body, dialect) if line.field is not Field.NONE]
    if effective and effective[-1].field is not Field.DISALLOW and readable_body(body, dialect).cut:
        # The limit may have cut the last line short, so the parser drops it.
        number = len(rows(body, dialect))
        effective = [line for line in effective if line.number < number]
    return effective


def _text(effective: list[Line], dialect: Dialect, group_starts: Collection[int], *, tidy: bool) -> str:
    texts = list(_rows(effective, dialect, group_starts, tidy=tidy))
    if texts and looks_marked(octets("\n".join(texts)), dialect):
        # A first line that begins like a byte order mark would lose it. In the file, other text was before it.
        texts.insert(0, "")
    return "\n".join(texts) + "\n" * (tidy and bool(texts))


def _rows(
    effective: list[Line], dialect: Dialect, group_starts: Collection[int], *, tidy: bool
) -> Iterator[str]:
    before = None
    for line in effective:
        if before is not None and line.number in group_starts:
            # Needed if only a blank line separates groups; otherwise it is for readability.
            needed = dialect.blank_line_separates and before not in _RULES
            if tidy or needed:
                yield ""
        yield _row(line, dialect, tidy=tidy)
        before = line.field


def _row(line: Line, dialect: Dialect, *, tidy: bool) -> str:
    # The value of Content-Usage and Content-Signal may start with a path, too.
    is_path = line.field in _RULES or (line.field is Field.UNKNOWN and line.value.startswith("/"))
    value = _rule_path(line.value) if is_path else readable(line.value)
    if tidy:
        name = line.field.value.capitalize() if line.field is not Field.UNKNOWN else readable(line.name)
        text = f"{name}: {value}".rstrip(" ")
        if dialect.max_line_bytes is None or len(octets(text)) <= dialect.max_line_bytes:
            return text
    # As short as it was: the name as written, which the dialect understands.
    return f"{_as_it_was(line.name)}:{_as_it_was(line.value)}"


def _as_it_was(text: str) -> str:
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "surrogateescape")


def _rule_path(value: str) -> str:
    """Replace octets that are not UTF-8 by their escapes, which are equal in every dialect (M5)."""
    if value.isascii():
        return value
    text = value.encode("latin-1").decode("utf-8", "surrogateescape")
    return _STRAY.sub(lambda stray: f"%{ord(stray[0]) - 0xDC00:02X}", text)
