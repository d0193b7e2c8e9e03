"""The octets of a body that count, converted to UTF-8."""

import codecs
from typing import NamedTuple

from polite.robots.dialect import Dialect

_UTF_8_MARK = b"\xef\xbb\xbf"
# The marks of UTF-32 first: one of them starts like a mark of UTF-16.
_WIDE = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


class ReadableBody(NamedTuple):
    """The octets that count, without byte order mark.

    Attributes:
        octets: the octets.
        cut: whether a limit, or the body's end, cut the last line short.
    """

    octets: bytes
    cut: bool


def readable_body(body: bytes, dialect: Dialect) -> ReadableBody:
    """Return the part of a body that counts, in UTF-8 (F1, F3, F4, H9).

    Octets that are not UTF-8 stay as they are.
    """
    cut = len(body) >= dialect.max_bytes
    body = body[: dialect.max_bytes]
    encoding = wide_encoding(body) if dialect.reads_utf16 else None
    if encoding is not None:
        octets, whole = _in_utf_8(body, encoding)
        # Two octets of UTF-16 may be three of UTF-8; the limit applies to the result, too.
        cut = cut or not whole or len(octets) >= dialect.max_bytes
        body = octets[: dialect.max_bytes]
    return ReadableBody(body[_mark_length(body, dialect) :], cut)


def wide_encoding(body: bytes) -> str | None:
    """Return the encoding that a byte order mark of UTF-16 or UTF-32 names, or None.

    If the body has no colon in that encoding, it is some other text, and its octets are read as they are.
    """
    if body[:1] not in (b"\xff", b"\xfe", b"\x00"):
        return None
    encoding = next((name for mark, name in _WIDE if body.startswith(mark)), None)
    return encoding if encoding and ":".encode(encoding) in body else None


def looks_marked(octets: bytes, dialect: Dialect) -> bool:
    """Return whether a part of the body's start would be taken for a byte order mark."""
    return _mark_length(octets, dialect) > 0 or (dialect.reads_utf16 and wide_encoding(octets) is not None)


def _mark_length(body: bytes, dialect: Dialect) -> int:
    if body.startswith(_UTF_8_MARK):
        return len(_UTF_8_MARK)
    if dialect.skips_partial_bom:
        return next((length for length in (2, 1) if body.startswith(_UTF_8_MARK[:length])), 0)
    return 0


def _in_utf_8(body: bytes, encoding: str) -> tuple[bytes, bool]:
    """Convert the text with its mark. Also return whether it ends with a whole character.

    Half a character at the end is dropped. A lone surrogate becomes U+FFFD, as in URL parsers.
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    text = decoder.decode(body)
    return text.encode("utf-8"), not decoder.getstate()[0]
