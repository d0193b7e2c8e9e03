"""Reads header fields from what HTTP clients have: a mapping, or pairs, of str or bytes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from polite.errors import InvalidOption, redact_url

# Responses whose Location is followed for pages and sitemaps (RFC 9110, 15.4). RFC 9309 names no statuses: see `Exchange.next`.
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# A token of RFC 9110, 5.6.2.
WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
# Possessive repeats (*+, ++, ?+) keep each match linear. White space around `=` is bad, and to be accepted (RFC 9110, 11.2).
QUOTED = r'"(?:[^"\\]++|\\.)*"'
PARAMETER = rf"{WORD}(?:[ \t]*+=[ \t]*+(?:{QUOTED}|[^ \t\",;]*+))?"
_NAME_AND_VALUE = re.compile(rf"({WORD})(?:[ \t]*+=[ \t]*+({QUOTED}|[^ \t\",;]*+))?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def first_of_each(text: str) -> dict[str, str]:
    """Return the parameters in a text of nothing else, with their names in lower case; of equal names the first.

    >>> first_of_each('; rel="license"; type=text/html; rel=next')
    {'rel': 'license', 'type': 'text/html'}
    """
    found: dict[str, str] = {}
    for name, value in _NAME_AND_VALUE.findall(text):
        found.setdefault(name.lower(), unquoted(value))
    return found


def unquoted(value: str) -> str:
    """Return the text of a token or of a quoted string."""
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value


# The longest of the three forms has 33 characters.
_LONGEST_DATE = 64
# The three forms, and what servers make of them: no weekday, no seconds, another name of the one zone. `email.utils` alone accepts
# any text that begins with a date, such as two dates in one field.
_FORMS = re.compile(
    r"(?:[a-z]{3,9},? )?\d{1,2}[ -][a-z]{3}[ -]\d{2,4} \d{1,2}:\d\d(?::\d\d)?(?: (?:gmt|utc|ut|z|[+-]\d{4}))?"
    r"|[a-z]{3} [a-z]{3} [ \d]?\d \d{1,2}:\d\d:\d\d \d{4}(?: (?:gmt|utc))?",
    re.ASCII | re.IGNORECASE,
)


def unix_time(text: str) -> float | None:
    """Return an HTTP date as Unix time, or None if it is not one. Never raises.

    >>> unix_time("Sun, 06 Nov 1994 08:49:37 GMT"), unix_time("Sunday, 06-Nov-94 08:49:37 GMT"), unix_time("0")
    (784111777.0, 784111777.0, None)
    """
    return _known_form(text) if len(text) <= _LONGEST_DATE else None


# All responses of a second have one Date, and a page's Last-Modified is read more than once.
@lru_cache(maxsize=1_000)
def _known_form(text: str) -> float | None:
    return lenient_unix_time(text) if _FORMS.fullmatch(text) else None


def lenient_unix_time(text: str) -> float | None:
    """Return a date in almost any form as Unix time, or None. Never raises. The caller limits its length."""
    try:
        date = parsedate_to_datetime(text)
        # Without a zone it is in GMT: HTTP has no other.
        return (date if date.tzinfo is not None else date.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


# Characters that are read. The relevant directives come early in any honest header.
_LONGEST_CACHE_CONTROL = 4096
# A crawl meets few values that are not longer than this.
_USUAL = 256
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,18})\"?", re.ASCII)
_SECONDS = re.compile(r"\s*(\d{1,18})\s*", re.ASCII)


class CacheControl(NamedTuple):
    """The directives that matter to a private client. Malformed directives are ignored.

    `s-maxage` is for shared proxies and ignored. `must-revalidate` forbids the use of a stale copy, which no crawler shows.

    >>> CacheControl.of("public, max-age=600, immutable")
    CacheControl(max_age_s=600.0, no_store=False, no_cache=False, immutable=True)

    Attributes:
        max_age_s: For how long the response is fresh, or None if it does not say.
        no_store: Nothing of the response is to be kept.
        no_cache: Each use of a copy needs a request, perhaps a conditional one. With a list of fields it counts as for all.
        immutable: The response does not change while it is fresh (RFC 8246).
    """

    max_age_s: float | None = None
    no_store: bool = False
    no_cache: bool = False
    immutable: bool = False

    @classmethod
    def of(cls, text: str) -> "CacheControl":
        """Read a field; several fields are joined by commas."""
        return _usual(text) if len(text) <= _USUAL else _parsed(text[:_LONGEST_CACHE_CONTROL])


NO_CACHE_CONTROL = CacheControl()


def _parsed(text: str) -> CacheControl:
    directives = [part.strip().lower() for part in text.split(",")]
    names = {name.partition("=")[0].rstrip() for name in directives}
    ages = [int(match[1]) for match in map(_MAX_AGE.fullmatch, directives) if match is not None]
    # RFC 9111, 4.2.1: of conflicting values, the shortest is the careful choice.
    longest = float(min(ages)) if ages else None
    return CacheControl(longest, "no-store" in names, "no-cache" in names, "immutable" in names)


_usual = lru_cache(maxsize=1_000)(_parsed)


def age_s(age: str | None) -> float:
    """Return for how long the response was in caches on its way, 0 if the field does not say.

    >>> age_s("120"), age_s("soon"), age_s(None)
    (120.0, 0.0, 0.0)
    """
    spent = _SECONDS.fullmatch((age or "")[:64])
    return float(spent[1]) if spent else 0.0


# Characters of a field and links that are read: far more than any honest response has.
_LONGEST_LINK = 16_384
_MOST_LINKS = 200
_LINK = re.compile(rf"<([^<>]*+)>((?:[ \t]*+;[ \t]*+(?:{PARAMETER})?)*)")


class Link(NamedTuple):
    """One link.

    Attributes:
        target: the URL as written, perhaps relative.
        parameters: the names in lower case, each with its first value (RFC 8288, 3.3 and 3.4.1).
    """

    target: str
    parameters: Mapping[str, str]

    def has_relation(self, relation: str) -> bool:
        """Return whether it has this relation type, in lower case. Relation types ignore case (RFC 8288, 2.1.1)."""
        return relation in self.parameters.get("rel", "").lower().split()


def links(text: str) -> Iterator[Link]:
    """Iterate over the links of a field. What is malformed is skipped, up to the next `<`.

    >>> [link.target for link in links('</style.css>; rel="preload", <https://example.com/l.xml>; rel=license')]
    ['/style.css', 'https://example.com/l.xml']
    """
    for found in islice(_LINK.finditer(text[:_LONGEST_LINK]), _MOST_LINKS):
        yield Link(found[1].strip(), first_of_each(found[2]))


Headers = (
    Mapping[str, str | float]
    | Mapping[bytes, bytes]
    | Iterable[tuple[str, str | float]]
    | Iterable[tuple[bytes, bytes]]
)
"""The header fields of a response, as HTTP clients have them: a mapping, or pairs, of str or bytes."""
# Fields that were selected of them, with names in lower case.
Fields = list[tuple[str, object]]

# aiohttp's headers, by the names of their types, since multidict may not be installed. They ignore case.
_FOLDING = ("CIMultiDictProxy", "CIMultiDict")
_FOLDING_MODULES = ("multidict._multidict", "multidict._multidict_py")


class FieldNames:
    """Names of fields, in lower case, that are searched for together.

    Attributes:
        names: The names.
        initials: Their first letters, as they are in names of str and of bytes. They exclude most other names.
    """

    __slots__ = ("initials", "names")

    def __init__(self, *names: str) -> None:
        self.names: frozenset[str] = frozenset(names)
        letters = {letter for name in names for letter in (name[0].lower(), name[0].upper())}
        self.initials: frozenset[str | int] = frozenset(letters) | frozenset(map(ord, letters))


def found(headers: Headers | Fields, wanted: FieldNames) -> Fields:
    """Return the fields with these names, in any case of their names, with the names in lower case.

    Whether a mapping ignores case cannot be determined (it may hold both "server" and "SERVER"), so all its names are compared,
    unless its type is known.

    Raises:
        InvalidOption: They are neither a mapping nor pairs.
    """
    kind = type(headers)
    if kind.__name__ in _FOLDING and kind.__module__ in _FOLDING_MODULES:
        # Hot path: nearly every response has none of them.
        for name in wanted.names:
            if name in headers:
                return [(each, value) for each in wanted.names for value in headers.getall(each, ())]  # type: ignore[union-attr]
        return []
    initials = wanted.initials
    try:
        # Some mappings do not iterate over their names.
        if hasattr(headers, "keys"):
            if not [name for name in headers.keys() if name[0] in initials]:  # noqa: SIM118
                return []
            pairs: Iterable[tuple[str | bytes, object]] = headers.items()  # type: ignore[union-attr]
        else:
            pairs = headers  # type: ignore[assignment]
        alike = [(name, value) for name, value in pairs if name[0] in initials]
        named = [(text_of(name).lower(), value) for name, value in alike]
    except LookupError:
        # An empty name, which few clients hand on.
        return selected(headers, wanted.names)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError) as error:
        raise _neither(headers) from error
    return _single([field for field in named if field[0] in wanted.names])


def selected(headers: Headers, wanted: AbstractSet[str]) -> Fields:
    """Return the fields with these names (in lower case), in their order. Pairs that can be read only once are read once.

    Raises:
        InvalidOption: They are neither a mapping nor pairs.
    """
    try:
        pairs: Iterable[tuple[str | bytes, object]]
        pairs = headers.items() if hasattr(headers, "keys") else headers  # type: ignore[union-attr]
        named = [((key if isinstance(key, str) else text_of(key)).lower(), value) for key, value in pairs]
        fields = [field for field in named if field[0] in wanted]
    except (TypeError, ValueError, AttributeError) as error:
        raise _neither(headers) from error
    return _single(fields)


def text_of(value: object) -> str:
    """Return a name or a value as text."""
    return bytes(value).decode("latin-1") if isinstance(value, bytes | bytearray) else str(value)


def _single(fields: Fields) -> Fields:
    """Return one field for each value of those that hold several in a list."""
    return [
        (name, each)
        for name, value in fields
        for each in (value if isinstance(value, list | tuple) else (value,))
    ]


def _neither(headers: object) -> InvalidOption:
    return InvalidOption(f"headers must be a mapping or pairs, got {redact_url(repr(headers))}")


LENGTH_FIELDS = frozenset({"content-length"})
# Digits. A larger number exceeds any page.
_MOST_DIGITS = 18
# RFC 9110, 6.4.1 and 8.6: these have no body. The length of a 304 is that of the page it speaks for.
_WITHOUT_BODY = frozenset({204, 205, 304})
_LEAST_FINAL = 200


def body_length(status: int | None, fields: Fields) -> int:
    """Return the octets of a response's body, by its fields with names in lower case; 0 if they do not say so.

    >>> body_length(200, [("content-length", "12")]), body_length(304, [("content-length", "12")])
    (12, 0)
    """
    if status is None or status < _LEAST_FINAL or status in _WITHOUT_BODY:
        return 0
    texts = [text_of(value).strip(" \t") for name, value in fields if name in LENGTH_FIELDS]
    lengths = [
        int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    ]
    return max(lengths, default=0)
