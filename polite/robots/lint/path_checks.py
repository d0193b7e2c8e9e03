"""Checks of the path of an Allow or Disallow line."""

import re
from collections.abc import Iterator

from polite.robots.dialect import Dialect
from polite.robots.lines import WHITE, Line
from polite.robots.lint.finding import Finding, quoted

# Characters that URL parsers escape in a path and in a query, so no URL has them (WHATWG URL, query percent-encode set); and other
# characters that RFC 3986 excludes, which some parsers do not escape.
_EXCLUDED = re.compile(r'[\x00-\x20"<>\x7f]')
_DISPUTED = re.compile(r"[\\^`{|}]")
# Below this, octets of Latin-1 are no letters, but those of other code pages are.
_FIRST_OF_LATIN_1 = 0xA0


def path_findings(line: Line, dialect: Dialect, *, inverted: bool) -> Iterator[Finding]:
    """Check a rule's path (X2, X4, D5, D11, D13, D18).

    Args:
        line: the rule.
        dialect: how the file is read.
        inverted: whether the group has a path instead of a name (X1), so a path without a slash is its consequence.
    """
    yield from _characters(line, dialect)
    yield from _encoding(line)
    yield from _fragment(line)
    if line.value[:1] not in ("", "/", "*") and not dialect.supplies_slash and not inverted:
        yield Finding(
            line.number,
            "D5",
            f"the path {quoted(line.value)} does not start with a slash, and matches nothing",
            "Write the path from the root of the site, such as /folder/",
        )
    if not dialect.has_wildcards and ("*" in line.value or line.value.endswith("$")):
        yield Finding(
            line.number,
            "X4",
            f"{quoted(line.value)} has a wildcard, which is an ordinary character in this dialect",
            "Write the start of the path, without * and $",
        )


def _characters(line: Line, dialect: Dialect) -> Iterator[Finding]:
    if len([part for part in line.value.split() if part[0] in "/*"]) > 1:
        yield Finding(
            line.number,
            "X2",
            f"several paths in one line: {quoted(line.value)} is read as one",
            f"Write a {line.field.value.capitalize()} line for each path",
        )
    elif raw := _EXCLUDED.search(line.value) or _DISPUTED.search(line.value):
        yield Finding(line.number, "D11", _unfit(raw[0], dialect), f"Write %{ord(raw[0]):02X} instead")


def _unfit(character: str, dialect: Dialect) -> str:
    """Say what is wrong with an unescaped character in a path, and how polite reads it."""
    if dialect.excluded_equal_escapes:
        reading = f"it as %{ord(character):02X}; for other crawlers the rule matches nothing"
    elif _EXCLUDED.match(character):
        reading = "it as it is, and no URL has it: the rule matches nothing"
    else:
        reading = "it as it is: the rule matches nothing if a URL has its escape"
    return f"{character!r} is not escaped in the path; polite reads {reading}"


def _encoding(line: Line) -> Iterator[Finding]:
    """Find a path in another encoding than UTF-8, which URLs have (M5)."""
    octet = _first_stray(line.value)
    if octet is None:
        return
    escape = f"%{octet:02X}"
    hint = "Save the file as UTF-8, or write the escapes that the site's URLs have"
    if octet >= _FIRST_OF_LATIN_1:
        letter = chr(octet)
        hint += f"; {letter!r} is {''.join(f'%{each:02X}' for each in letter.encode())} in UTF-8"
    yield Finding(
        line.number,
        "D13",
        f"the path {quoted(line.value)} is not UTF-8: an octet is read as {escape}, which no URL in UTF-8 has",
        hint,
    )


def _first_stray(value: str) -> int | None:
    """Return the first octet that is not UTF-8, or None."""
    if value.isascii():
        return None
    octets = value.encode("latin-1")
    try:
        octets.decode("utf-8")
    except UnicodeDecodeError as error:
        return octets[error.start]
    return None


def _fragment(line: Line) -> Iterator[Finding]:
    """Find a `#` within a path. A comment follows white space, or has white space after its `#`."""
    before, mark, after = line.text.partition("#")
    if mark and line.value and before[-1:] not in WHITE and after[:1] not in ("", *WHITE):
        meant = f"{line.value}#{after.split(maxsplit=1)[0]}"
        yield Finding(
            line.number,
            "D18",
            f"# starts a comment, so {quoted(meant)} is read as {quoted(line.value)}",
            "Write %23 for a # in a path, or a space before a comment; URLs are compared without their fragment",
        )
