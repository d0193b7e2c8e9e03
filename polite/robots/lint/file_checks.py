"""Checks of a file as a whole: its encoding, its kind, its size."""

import re
from collections.abc import Iterator

from polite.robots.dialect import Dialect
from polite.robots.encoding import wide_encoding
from polite.robots.lines import rows
from polite.robots.lint.finding import Finding

_UTF_8_MARK = b"\xef\xbb\xbf"
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n\f]*+<(?:!doctype|!--|\?xml|[a-z])", re.IGNORECASE)
# In UTF-16, every second octet of ASCII text is NUL; in honest UTF-8 none is.
_LOOKED_AT = 1_024
_NUL_SHARE = 4


def is_wide(body: bytes) -> bool:
    """Return whether it is UTF-16 or UTF-32, with or without a byte order mark."""
    head = body[:_LOOKED_AT]
    return head.startswith(_WIDE_MARKS) or head.count(0) * _NUL_SHARE > len(head)


def file_findings(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    """Check a file for D2 to D4 and X8. The file need not be cut at the dialect's limit."""
    if is_wide(body):
        read = dialect.reads_utf16 and wide_encoding(body)
        yield Finding(
            1,
            "D3",
            "the file is UTF-16 or UTF-32; "
            + ("polite reads it, many crawlers do not" if read else "polite finds no rule in it"),
            "Save it as UTF-8 without a byte order mark",
        )
    elif body.startswith(_UTF_8_MARK):
        yield Finding(
            1,
            "D2",
            "the file starts with a byte order mark, which some crawlers read as a part of the first field",
            "Save it as UTF-8 without a byte order mark",
        )
    markup = _MARKUP.match(body, 0, dialect.max_bytes)
    if markup is not None:
        yield Finding(
            _line(body[: markup.end()]),
            "D4",
            "this is an HTML page, not a robots.txt: only lines that look like rules by accident count",
            "Serve plain text at /robots.txt, or respond 404 if there is no such file",
        )
    if len(body) > dialect.max_bytes:
        yield Finding(
            len(rows(body, dialect)),
            "X8",
            f"the file has {len(body)} octets; octets beyond {dialect.max_bytes}, from here on, are ignored",
            "Join rules with a common start, or put excluded pages into one folder",
        )


def _line(before: bytes) -> int:
    """Return the number of the line in which this text ends (H9)."""
    head = before.replace(b"\r\n", b"\n")
    return 1 + head.count(b"\n") + head.count(b"\r")
