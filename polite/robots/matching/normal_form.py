"""EscapeNormaliser: one normal form for the ways to percent-encode a path (RFC 9309, 2.2.2)."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from string import ascii_letters, digits

_UNRESERVED = ascii_letters + digits + "-._~"
# The ASCII characters that RFC 3986 excludes from URLs, except "%" (starts an escape), "#" (ends a path and a rule) and LF
# (ends a line; the matcher relies on LF being in no rule).
EXCLUDED = "".join(chr(octet) for octet in (*range(0x21), 0x7F) if octet != 0x0A) + '"<>\\^`{|}'
_NOT_ASCII = r"\x80-\xff"
# The special characters of rules, which are escaped to mean themselves (RFC 9309, 2.2.3).
_SPECIALS = "*$"
# The reserved characters of RFC 3986 (2.2), except the special characters, and "#", which no path holds unescaped.
RESERVED = ":/?[]@!&'()+,;="


# By octet: itself if it is ASCII, else its escape.
_ESCAPED = [chr(octet) if octet < 0x80 else f"%{octet:02X}" for octet in range(256)]
# Octets that one call rewrites. Other threads, such as an event loop's, wait for that call.
_AT_A_TIME = 65_536


class EscapeNormaliser:
    """Rewrites percent-escapes in a text of one character per octet. Linear and idempotent.

    A text without `%` and without octets outside ASCII is returned as it is. Octets outside ASCII become escapes.
    """

    __slots__ = ("_escapes", "_suspect")

    def __init__(self, decoded: str | None, *, upper: bool = True) -> None:
        """Build the table of replacements.

        Args:
            decoded: the characters whose escapes are decoded; None leaves all escapes as they are.
            upper: whether the hexadecimal digits of all other escapes become upper-case.
        """
        # By the two digits of an escape: what it becomes.
        self._escapes: dict[str, str] = {}
        self._suspect = re.compile(f"[{_NOT_ASCII}]")
        if decoded is not None:
            for high, low in product("0123456789abcdefABCDEF", repeat=2):
                octet = int(high + low, 16)
                kept = f"%{octet:02X}" if upper else f"%{high}{low}"
                self._escapes[high + low] = chr(octet) if chr(octet) in decoded else kept
            self._suspect = re.compile(f"[%{_NOT_ASCII}]")

    def __call__(self, text: str) -> str:
        if self._suspect.search(text) is None:
            return text
        if len(text) <= _AT_A_TIME:
            return self._rewritten(text)
        return "".join([self._rewritten(piece) for piece in _pieces(text)])

    def _rewritten(self, text: str) -> str:
        if self._escapes and "%" in text:
            find = self._escapes.get
            before, *parts = text.split("%")
            text = before + "".join([(find(part[:2]) or f"%{part[:2]}") + part[2:] for part in parts])
        if not text.isascii():
            # These escapes are in normal form.
            text = "".join(map(_ESCAPED.__getitem__, text.encode("latin-1")))
        return text


def _pieces(text: str) -> Iterator[str]:
    """Cut a text into pieces, but no escape."""
    start = 0
    while start < len(text):
        stop = start + _AT_A_TIME
        # An escape may begin with one of the last two characters, and end in the next piece.
        escape = text.find("%", stop - 2, stop)
        stop = stop if escape < 0 else escape
        yield text[start:stop]
        start = stop


@lru_cache(maxsize=16)
def escape_normaliser(
    *, unreserved: bool, specials: bool, excluded: bool, reserved: str = ""
) -> EscapeNormaliser:
    """Return the normaliser that decodes the escapes of these classes of characters.

    Decoding (instead of encoding) has the effect that a URL without "%" is in normal form already.

    Args:
        unreserved: decode the unreserved characters of RFC 3986.
        specials: decode `*` and `$`.
        excluded: decode the characters that RFC 3986 excludes from URLs, and `'`: URL parsers escape `'` in a query but not
            in a path, so both forms are equal.
        reserved: the reserved characters to decode.
    """
    return EscapeNormaliser(
        _UNRESERVED * unreserved + _SPECIALS * specials + (EXCLUDED + "'") * excluded + reserved
    )


@lru_cache(maxsize=16)
def url_normaliser(*, excluded: bool, reserved: str = "") -> EscapeNormaliser:
    """Return the normaliser of URLs that are not normalised: all other escapes stay as they are."""
    decoded = (EXCLUDED + "'") * excluded + reserved
    return EscapeNormaliser(decoded or None, upper=False)


def plain_specials(text: str) -> str:
    """Decode the escapes of `*` and `$` in a text in normal form."""
    return text.replace("%2A", "*").replace("%24", "$") if "%2" in text else text
