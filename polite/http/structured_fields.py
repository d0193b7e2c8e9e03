"""Structured fields (RFC 9651): items, lists and dictionaries, parsed in linear time."""

import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

__all__ = [
    "BareItem", "Date", "DisplayString", "InnerList", "Item", "Malformed", "Member", "Token",
    "parse_dictionary", "parse_item", "parse_list",
]  # fmt: skip

# Possessive repeats (*+, ++, ?+) keep each match linear.
_KEY = re.compile(r"([a-z*][a-z0-9_.*-]*+)(=)?")
_PARAMETER = re.compile(rf"; *+{_KEY.pattern}")
_TOKEN = re.compile(r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*+")
_NUMBER = re.compile(r"-?([0-9]++)(?:\.([0-9]*+))?")
_STRING = re.compile(r'"((?:[ !#-\[\]-~]++|\\["\\])*)"')
_ESCAPED = re.compile(r"\\(.)")
_DISPLAY_STRING = re.compile(r'%"((?:[ !#$&-~]++|%[0-9a-f]{2})*)"')
_ESCAPED_OCTETS = re.compile(r"(?:%[0-9a-f]{2})+")
_BYTES = re.compile(r":([A-Za-z0-9+/=]*+):")
_BOOLEAN = re.compile(r"\?([01])")
_SPACES = re.compile(r" *+")
# A comma before another member, or the end.
_COMMA_OR_END = re.compile(r"[ \t]*+(?:(,)[ \t]*+(?!\Z)|\Z)")
# Each with the closing parenthesis, if it follows.
_OPENING = re.compile(r"\( *+(\))?")
_SPACE_OR_CLOSING = re.compile(r" *+(\))| ++")

# RFC 9651, 3.3.1 and 3.3.2.
_INTEGER_DIGITS = 15
_WHOLE_DIGITS = 12
_FRACTION_DIGITS = 3


class Malformed(ValueError):
    """A text is no structured field of the expected type, so it must be ignored as a whole.

    RFC 9651, 4.2.

    Attributes:
        position: the 0-based index of the character at which parsing failed.
    """

    def __init__(self, position: int, expected: str) -> None:
        super().__init__(f"{expected} expected at character {position}")
        self.position = position


class Token(str):
    """A short word without quotes, such as `n` (RFC 9651, 3.3.4). Equal to the same str."""

    __slots__ = ()


class DisplayString(str):
    """A text in any script, with its escapes decoded (RFC 9651, 3.3.8)."""

    __slots__ = ()


class Date(int):
    """A time in whole seconds since 1970-01-01 UTC (RFC 9651, 3.3.7).

    Up to 15 digits, more than a datetime can represent.
    """

    __slots__ = ()


BareItem = bool | int | Decimal | str | bytes
"""A value: bool, int, Decimal, str (a String), Token, bytes, Date or DisplayString."""


class Item(NamedTuple):
    """One value and its parameters (RFC 9651, 3.3)."""

    value: BareItem
    parameters: Mapping[str, BareItem]


class InnerList(NamedTuple):
    """Items in parentheses, and the parameters of the whole (RFC 9651, 3.1.1)."""

    items: tuple[Item, ...]
    parameters: Mapping[str, BareItem]


Member = Item | InnerList
"""What a list or a dictionary holds."""

_NO_PARAMETERS: Mapping[str, BareItem] = MappingProxyType({})


def parse_item(text: str) -> Item:
    """Parse an Item (RFC 9651, 4.2.3). Raises Malformed.

    Args:
        text: the field's value, one character per octet. Join several lines of one field with a comma first.
    """
    reader = _Reader(text)
    item = reader.item()
    reader.end()
    return item


def parse_list(text: str) -> list[Member]:
    """Parse a List (RFC 9651, 4.2.1); an empty text is an empty list. Raises Malformed."""
    members: list[Member] = []
    _Reader(text).each_member(lambda reader: members.append(reader.member()))
    return members


def parse_dictionary(text: str) -> dict[str, Member]:
    """Parse a Dictionary (RFC 9651, 4.2.2); the last value of a key counts. Raises Malformed."""
    members: dict[str, Member] = {}
    _Reader(text).each_member(lambda reader: reader.entry(members))
    return members


class _Reader:
    """Reads a text from left to right. Each method consumes what it reads, or raises Malformed."""

    __slots__ = ("_at", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        if not text.isascii():
            raise Malformed(next(at for at, c in enumerate(text) if not c.isascii()), "ASCII")
        self._match(_SPACES, "")

    def each_member(self, read: Callable[["_Reader"], None]) -> None:
        """Read members, separated by commas, up to the end of the text."""
        if self._at == len(self._text):
            return
        read(self)
        while self._match(_COMMA_OR_END, "a comma")[1]:
            read(self)

    def entry(self, into: dict[str, Member]) -> None:
        """Read a key with its value, which is True when the text names none."""
        key, equals = self._match(_KEY, "a key in lower case").groups()
        into[key] = self.member() if equals else Item(True, self._parameters())  # noqa: FBT003

    def member(self) -> Member:
        return self._inner_list() if self._text.startswith("(", self._at) else self.item()

    def item(self) -> Item:
        return Item(self._bare(), self._parameters())

    def end(self) -> None:
        self._match(_SPACES, "")
        if self._at < len(self._text):
            raise Malformed(self._at, "the end")

    def _inner_list(self) -> InnerList:
        closed = self._match(_OPENING, '"("')[1]
        items: list[Item] = []
        while not closed:
            items.append(self.item())
            closed = self._match(_SPACE_OR_CLOSING, 'a space or ")"')[1]
        return InnerList(tuple(items), self._parameters())

    def _parameters(self) -> Mapping[str, BareItem]:
        if not self._text.startswith(";", self._at):
            return _NO_PARAMETERS
        found: dict[str, BareItem] = {}
        while self._text.startswith(";", self._at):
            key, equals = self._match(_PARAMETER, "a key in lower case").groups()
            found[key] = self._bare() if equals else True
        return MappingProxyType(found)

    def _bare(self) -> BareItem:
        return _BY_FIRST.get(self._text[self._at : self._at + 1], _Reader.token)(self)

    def token(self) -> Token:
        return Token(self._match(_TOKEN, "a value")[0])

    def number(self) -> int | Decimal:
        start = self._at
        found = self._match(_NUMBER, "a number")
        whole, fraction = found.groups()
        if fraction is None and len(whole) <= _INTEGER_DIGITS:
            return int(found[0])
        if fraction and len(whole) <= _WHOLE_DIGITS and len(fraction) <= _FRACTION_DIGITS:
            return Decimal(found[0])
        raise Malformed(start, "a number of 15 digits, or of 12 and 3 after a point, at most")

    def date(self) -> Date:
        start = self._at
        self._at += 1
        seconds = self.number()
        if isinstance(seconds, Decimal):
            raise Malformed(start, "a whole number of seconds")
        return Date(seconds)

    def string(self) -> str:
        text = self._match(_STRING, "a string of printable ASCII in quotes")[1]
        return _ESCAPED.sub(r"\1", text) if "\\" in text else text

    def display_string(self) -> DisplayString:
        start = self._at
        text = self._match(_DISPLAY_STRING, "a display string")[1]
        try:
            return DisplayString(_ESCAPED_OCTETS.sub(_decoded, text))
        except UnicodeDecodeError as error:
            raise Malformed(start, "a display string in UTF-8") from error

    def octets(self) -> bytes:
        start = self._at
        text = self._match(_BYTES, "Base64 between colons")[1]
        try:
            # Missing padding and pad bits that are not zero are no failure (RFC 9651, 4.2.7).
            return a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
        except Base64Error as error:
            raise Malformed(start, "Base64") from error

    def boolean(self) -> bool:
        return self._match(_BOOLEAN, "?0 or ?1")[1] == "1"

    def _match(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise Malformed(self._at, expected)
        self._at = found.end()
        return found


def _decoded(escapes: re.Match[str]) -> str:
    """Decode adjacent escapes. All octets of a character outside ASCII are escaped together."""
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8")


_BY_FIRST: dict[str, Callable[[_Reader], BareItem]] = {
    **dict.fromkeys("-0123456789", _Reader.number),
    '"': _Reader.string,
    ":": _Reader.octets,
    "?": _Reader.boolean,
    "@": _Reader.date,
    "%": _Reader.display_string,
}
