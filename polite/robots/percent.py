"""Spelling: one normal form for the many ways to percent-encode a path (RFC 9309, 2.2.2)."""

import re
from functools import lru_cache
from itertools import product
from string import ascii_letters, digits

_UNRESERVED = ascii_letters + digits + "-._~"
# Character classes. EXCLUDED: what may not stand in a URL as it is, by RFC 3986; "%" is left to the escapes.
_EXCLUDED = r"\x00-\x20\"#<>\\^`{|}\x7f-\xff"
_NOT_ASCII = r"\x80-\xff"
# The characters that are special in rules, when they are meant as themselves (RFC 9309, 2.2.3).
_SPECIALS = "*$"


class Spelling:
    """Rewrites a text of one character per octet. Linear, idempotent, and nearly free when nothing changes.

    `escaped`: the inside of a character class; what it holds becomes its escape. `decoded`: the characters
    whose escapes become themselves; the digits of all other escapes become upper-case. None leaves escapes.
    """

    __slots__ = ("_changed", "_changing", "_suspect")

    def __init__(self, escaped: str, decoded: str | None) -> None:
        change = {chr(octet): f"%{octet:02X}" for octet in range(256)}
        pattern = f"[{escaped}]"
        self._suspect = self._changing = re.compile(pattern)
        if decoded is not None:
            for high, low in product("0123456789abcdefABCDEF", repeat=2):
                octet = int(high + low, 16)
                change[f"%{high}{low}"] = chr(octet) if chr(octet) in decoded else f"%{octet:02X}"
            # One class is found three times as fast as the alternatives, and most texts hold nothing of it.
            self._suspect = re.compile(f"[%{escaped}]")
            self._changing = re.compile(f"%[0-9A-Fa-f]{{2}}|{pattern}")
        self._changed = change

    def __call__(self, text: str) -> str:
        if self._suspect.search(text) is None:
            return text
        return self._changing.sub(lambda match: self._changed[match[0]], text)


@lru_cache(maxsize=16)
def spelling(*, unreserved: bool, specials: bool, excluded: bool) -> Spelling:
    """Escapes of unreserved characters are decoded, those of `*` and `$` too, excluded characters escaped.

    With `excluded` goes `'`: URL parsers escape it in a query and leave it in a path, so the two are equal.
    """
    decoded = _UNRESERVED * unreserved + _SPECIALS * specials + "'" * excluded
    return Spelling(_EXCLUDED if excluded else _NOT_ASCII, decoded)


NON_ASCII_ONLY = Spelling(_NOT_ASCII, None)


def plain_specials(text: str) -> str:
    """A normal text, with the escapes of `*` and `$` made plain."""
    return text.replace("%2A", "*").replace("%24", "$") if "%2" in text else text
