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
# Control characters that no text has in any encoding. Text has tab, line ends, form feed, and escape (in ISO-2022).
_CONTROLS = bytes(octet for octet in (*range(0x20), 0x7F) if octet not in b"\t\n\v\f\r\x1b")
# Of random octets, one of ten is such a character.
_CONTROL_SHARE = 32
# So many are strays, however short the text is.
_STRAY_CONTROLS = 3
# How other kinds of files start.
_SIGNATURES = {
    b"\x1f\x8b": "gzip data",
    b"\x28\xb5\x2f\xfd": "Zstandard data",
    b"PK\x03\x04": "a ZIP archive",
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
}


def is_wide(body: bytes) -> bool:
    """Return whether it is UTF-16 or UTF-32, with or without a byte order mark."""
    head = body[:_LOOKED_AT]
    if head.startswith(_WIDE_MARKS):
        return True
    rest = head.replace(b"\0", b"")
    return head.count(0) * _NUL_SHARE > len(head) and rest != b"" and _is_text(rest)


def is_binary(body: bytes) -> bool:
    """Return whether its octets are text in no encoding. Then lines that look like rules do so by accident."""
    if body.startswith(tuple(_SIGNATURES)):
        return True
    return not is_wide(body) and not _is_text(body[:_LOOKED_AT])


def _is_text(head: bytes) -> bool:
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls <= max(_STRAY_CONTROLS, len(head) // _CONTROL_SHARE)


def file_findings(body: bytes, dialect: Dialect) -> Iterator[Finding]:
    """Check a file for D2 to D4, D12 and X8. The file need not be cut at the dialect's limit."""
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
    if is_binary(body):
        kind = next((name for start, name in _SIGNATURES.items() if body.startswith(start)), "binary data")
        yield Finding(
            1,
            "D12",
            f"the file is {kind}, not text: only lines that look like rules by accident count",
            "Serve plain text in UTF-8 at /robots.txt; a compressed response needs its Content-Encoding",
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
