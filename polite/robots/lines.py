"""The lines of a file: its encoding, numbered lines with a field and a value each, and the tidy text of them."""

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum
from functools import lru_cache
from os.path import commonprefix
from typing import NamedTuple

from polite.robots.dialect import Dialect

UTF_8_MARK = b"\xef\xbb\xbf"
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
    cut = len(body) > dialect.max_bytes
    body = body[: dialect.max_bytes]
    encoding = wide_encoding(body) if dialect.reads_utf16 else None
    if encoding is not None:
        # Half a character at the end is dropped. A lone surrogate becomes U+FFFD, as in URL parsers.
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        octets = decoder.decode(body).encode("utf-8")
        # Two octets of UTF-16 may be three of UTF-8; the limit applies to the result, too.
        cut = cut or bool(decoder.getstate()[0]) or len(octets) > dialect.max_bytes
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


def _mark_length(body: bytes, dialect: Dialect) -> int:
    if body.startswith(UTF_8_MARK):
        return len(UTF_8_MARK)
    if dialect.skips_partial_bom:
        return next((length for length in (2, 1) if body.startswith(UTF_8_MARK[:length])), 0)
    return 0


# The format's white space. strip() alone would also remove U+0085, U+00A0 and more, which here are octets of ordinary
# letters. Vertical tab and form feed are no line ends; no URL contains them, so they may be removed.
WHITE = " \t\v\f"
# What ends a word: white space, or the end of the text (a slice of one character that is empty).
WHITE_OR_END = frozenset(("", *WHITE))
# How a value that is an absolute URL begins.
ABSOLUTE_URL = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE | re.ASCII)
# How "surrogatepass" encodes the lone surrogates that stand for octets, U+DC80 to U+DCFF.
_STRAY = re.compile(rb"\xed([\xb2\xb3])([\x80-\xbf])")


class Field(Enum):
    """The field of a line. The value is the field's name in lower case."""

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    VISIT_TIME = "visit-time"
    HOST = "host"
    UNKNOWN = "a field that the dialect does not know"
    NONE = "no field at all"

    # Hot path: Enum's own __hash__ is written in Python and costs more than the rest of a set lookup.
    __hash__: Callable[..., int] = object.__hash__


_KNOWN = {field.value: field for field in Field if field not in {Field.UNKNOWN, Field.NONE}}
_Starts = tuple[bytes, tuple[bytes, ...]]
_LOOKED_FOR = (Field.USER_AGENT, Field.SITEMAP, Field.HOST)


# Hot path: a hostile file has 80,000 of these, and to read a member of an Enum is slow before Python 3.12.
_UNKNOWN = Field.UNKNOWN


class Line(NamedTuple):
    """A line that is neither blank nor only a comment.

    Texts have one character per octet; see `readable`.

    Attributes:
        number: 1-based; CR LF ends one line, not two.
        field: what the line is about.
        name: the field's name as written, without white space around it.
        value: the value as written, without comment and white space around it. A line without a field is its own value.
        text: the whole line.
    """

    number: int
    field: Field
    name: str
    value: str
    text: str

    @property
    def column(self) -> int:
        """The position of the value: 1-based, in characters of the line."""
        content = self.text.partition("#")[0]
        before = content.rstrip(WHITE).removesuffix(self.value) if self.value else content
        return len(readable(before)) + 1


def octets(text: str) -> bytes:
    """Return the UTF-8 of any text. Lone surrogates are no error.

    U+DC80 to U+DCFF become the octets for which Python's "surrogateescape" made them; other surrogates become three
    octets.
    """
    octets = text.encode("utf-8", "surrogatepass")
    return _STRAY.sub(_stray_octet, octets) if b"\xed" in octets else octets


def _stray_octet(surrogate: re.Match[bytes]) -> bytes:
    high, low = surrogate[1][0], surrogate[2][0]
    return bytes([(high & 0b11) << 6 | low & 0b11_1111])


def readable(text: str) -> str:
    """Decode a text of one character per octet; octets that are not UTF-8 become `\\xNN`."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "backslashreplace")


# The rest of a character or an escape that was cut.
_CUT_OCTETS = re.compile(rb"(?:%[0-9A-Fa-f]?|[\xc2-\xf4][\x80-\xbf]{0,2})\Z")


def lines(body: bytes, dialect: Dialect) -> Iterator[Line]:
    """Iterate over every line with content, valid or not (F1 to F5). Never raises on content.

    The last line is included even if a limit cut it short.
    """
    return _with_content(rows(body, dialect), dialect)


def _with_content(texts: Iterable[str], dialect: Dialect) -> Iterator[Line]:
    fields = fields_of(dialect)
    for number, text in enumerate(texts, 1):
        content = text.partition("#")[0].strip(WHITE)
        if content:
            yield Line(number, *fields.split(content), text)


def line_of(number: int, text: str, dialect: Dialect) -> Line:
    """Return the line of one of the `rows`, which must have content."""
    return Line(number, *fields_of(dialect).split(text.partition("#")[0].strip(WHITE)), text)


def rows(body: bytes, dialect: Dialect) -> list[str]:
    """Return the lines as they are, the first at index 0 (F1)."""
    return _text(readable_body(body, dialect).octets, dialect).split("\n")


def text(body: bytes, dialect: Dialect) -> str:
    """Return the text of all lines that count, with LF as line end (F1, F3, F4).

    The text has one character per octet.
    """
    octets, cut = readable_body(body, dialect)
    return _text(without_cut_line(octets, dialect) if cut else octets, dialect)


def without_cut_line(body: bytes, dialect: Dialect) -> bytes:
    """Drop the last line, which a limit cut short, unless it is a Disallow, which then forbids more than intended (H9).

    A cut Allow would allow more, a cut Crawl-delay would request less, and a cut User-agent would name another crawler. Of a cut
    Disallow, the rest of a character or of an escape is dropped.
    """
    start = max(body.rfind(b"\n"), body.rfind(b"\r")) + 1
    loose = _CUT_OCTETS.search(body, max(start, len(body) - 4))
    whole = body if loose is None else body[: loose.start()]
    field, path = fields_of(dialect).read(whole[start:].decode("latin-1"))
    return whole if field is Field.DISALLOW and path else body[:start]


def _text(octets: bytes, dialect: Dialect) -> str:
    # latin-1 decodes any octet. `splitlines` has more line ends than the format.
    text = octets.decode("latin-1")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if dialect.nul_ends_line and "\0" in text:
        text = "\n".join([row.partition("\0")[0] for row in text.split("\n")])
    if dialect.max_line_bytes is not None and len(text) > dialect.max_line_bytes:
        text = "\n".join([row[: dialect.max_line_bytes] for row in text.split("\n")])
    return text


# Spellings that are cached: enough for honest files, and bounded for hostile ones.
_MOST_SPELLINGS = 1_000
_LONGEST_SPELLING = 40


# What may follow a field's name in a line that can be no other field: an `s`, or what no name contains and no word follows.
_PLAIN_REST = re.compile(rf"s|(?![{WHITE}]+[a-z0-9_-])[^a-z0-9_-].*", re.DOTALL)


class Fields(dict[str, Field]):
    """Maps the text before a colon, white space included, to its field.

    Computes each spelling once. Bounded, so one instance can be kept.

    Attributes:
        least: the characters of the shortest known name; no shorter line has a known field.
        starts: for user-agent, Sitemap and Host the common start of all names, in lower case, and the names.
        colonless: a function that tells whether a row may state a field without a colon. Cheap if it does not.
    """

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self._colon_optional = dialect.colon_optional
        self._colon_needed = {Field.UNKNOWN, Field.NONE, *[Field.ALLOW] * dialect.allow_needs_colon}
        self._exact = _KNOWN | {written: _KNOWN[meant] for written, meant in dialect.misspellings}
        if not dialect.has_allow:
            del self._exact[Field.ALLOW.value]
        self._by_words = dialect.extends_by_words
        extended = {_KNOWN[name] for name in dialect.extends_fields}
        self._starts = tuple(name for name, field in self._exact.items() if field in extended)
        self._initials = {name[0] for name in self._starts}
        self.least: int = min(map(len, self._exact))
        self.starts: dict[Field, _Starts] = {field: self._starts_of(field) for field in _LOOKED_FOR}
        names = "|".join(re.escape(name) for name in self._exact)
        pattern = rf"[{WHITE}]*(?:{names})" if dialect.colon_optional else r"(?!)"
        colonless = re.compile(pattern, re.IGNORECASE | re.ASCII)
        self.colonless: Callable[[str], re.Match[str] | None] = colonless.match

    def _starts_of(self, field: Field) -> _Starts:
        # Only up to the first non-ASCII character: other letters have no unique lower case.
        names = (name for name, meant in self._exact.items() if meant is field)
        starts = tuple(name.encode("ascii", "replace").partition(b"?")[0] for name in names)
        return commonprefix(starts), starts  # noqa: RUF071 - of names, not of paths

    def __missing__(self, written: str) -> Field:
        name = written.strip(WHITE).lower()
        field = self._exact.get(name, _UNKNOWN)
        if field is _UNKNOWN:
            # With a `#` before the colon, the colon belongs to a comment.
            if not name or "#" in name:
                field = Field.NONE
            elif name[0] in self._initials and name.startswith(self._starts):
                field = self._extended(name)
        if len(written) <= _LONGEST_SPELLING:
            if len(self) >= _MOST_SPELLINGS:
                # A hostile file must not fill it for good.
                self.clear()
            self[written] = field
        return field

    def _extended(self, name: str) -> Field:
        """Return the field that a name in lower case starts with."""
        start = next((start for start in self._starts if name.startswith(start)), None)
        if start is None:
            return _UNKNOWN
        field = self._exact[start]
        return field if field is Field.DISALLOW or self._is_plain(name, start) else _UNKNOWN

    def _is_plain(self, name: str, start: str) -> bool:
        """Whether a name in lower case, of which more follows `start`, can be nothing else than that field's."""
        return self._by_words or _PLAIN_REST.fullmatch(name, len(start)) is not None

    def separates(self, row: str) -> bool:
        """Whether a row that states a rule separates groups: not if it is one by tolerance, of a field that may be another."""
        if self._by_words or row.partition(":")[0].strip(WHITE).lower() in self._exact:
            return True
        name = self.split(row.partition("#")[0].strip(WHITE))[1].lower()
        starts = [start for start in self._starts if name.startswith(start)]
        return not starts or name in self._exact or self._is_plain(name, starts[0])

    def read(self, row: str) -> tuple[Field, str]:
        """Return the field and the value of a line as it is; a line without a field has no value."""
        name, colon, value = row.partition(":")
        if not colon:
            return self.read_colonless(row) if self.colonless(row) else (Field.NONE, "")
        if "#" not in row:
            return self[name], value.strip(WHITE)
        content = row.partition("#")[0].strip(WHITE)
        field, _, value = self.split(content)
        return field, value

    def read_colonless(self, row: str) -> tuple[Field, str]:
        """Return what `read` returns for a row without a colon that may state a field."""
        name, value = self._two_words((row.partition("#")[0] if "#" in row else row).strip(WHITE))
        return (self[name], value) if name else (Field.NONE, "")

    def split(self, content: str) -> tuple[Field, str, str]:
        """Split a line without comment and outer white space into field, name and value (F5)."""
        name, colon, value = content.partition(":")
        if not colon:
            name, value = self._two_words(content)
        if name:
            return self[name], name.rstrip(WHITE), value.lstrip(WHITE)
        return Field.NONE, "", content

    def _two_words(self, content: str) -> tuple[str, str]:
        """Split a line of two words, a field first, if the dialect permits a missing colon."""
        if self._colon_optional:
            if "\t" in content:
                content = content.replace("\t", " ")
            name, space, value = content.partition(" ")
            value = value.strip(" ") if space else ""
            if value and " " not in value and self[name] not in self._colon_needed:
                return name, value
        return "", ""


class ColonlessFields(Fields):
    """The fields of a dialect with `colonless_values`.

    A "field" that starts with the words of a known one, and is none itself, is NONE in the map, so its line is read by `read`.
    """

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(dialect)
        names = "|".join(re.escape(name) for name in sorted(self._exact, key=len, reverse=True))
        self._words = re.compile(rf"({names})(?:[{WHITE}]++(.*+)|\Z)", re.IGNORECASE | re.ASCII | re.DOTALL)

    def __missing__(self, written: str) -> Field:
        field = super().__missing__(written)
        name = written.strip(WHITE)
        if field is not Field.NONE and name.lower() not in self._exact and self._words.match(name):
            field = Field.NONE
            if written in self:
                self[written] = field
        return field

    def read_colonless(self, row: str) -> tuple[Field, str]:
        return self.read(row)

    def read(self, row: str) -> tuple[Field, str]:
        content = row.partition("#")[0].strip(WHITE)
        field, _, value = self.split(content) if content else (Field.NONE, "", "")
        return field, "" if field is Field.NONE else value

    def split(self, content: str) -> tuple[Field, str, str]:
        name, colon, value = content.partition(":")
        name = name.rstrip(WHITE)
        if colon and (self[name] is not Field.NONE or not name):
            return super().split(content)
        if colon and value[:1] in WHITE_OR_END:
            # `Host name: a` separates an unknown field from its value, or one that the dialect extends.
            return self._extended(name.lower()), name, value.lstrip(WHITE)
        words = self._words.match(content)
        if words is None and not colon:
            return super().split(content)
        field = self._exact[words[1].lower()] if words else Field.NONE
        if words is None or field in self._colon_needed:
            return (Field.UNKNOWN, name, value) if colon else (Field.NONE, "", content)
        return field, words[1], words[2] or ""


@lru_cache(maxsize=16)
def fields_of(dialect: Dialect) -> Fields:
    """Return the fields of a dialect. Each is made once."""
    colonless = dialect.colon_optional and dialect.colonless_values
    return ColonlessFields(dialect) if colonless else Fields(dialect)


_RULES = {Field.ALLOW, Field.DISALLOW}
# What `surrogateescape` makes of an octet that is not UTF-8.
_STRAY_CHARACTER = re.compile(r"[\udc80-\udcff]")


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
    counted = _with_content(text(body, dialect).split("\n"), dialect)
    effective = [line for line in counted if line.field is not Field.NONE]
    tidy = _normalized(effective, dialect, group_starts, tidy=True)
    if len(octets(tidy)) <= dialect.max_bytes:
        return tidy
    return _normalized(effective, dialect, group_starts, tidy=False)


def _normalized(effective: list[Line], dialect: Dialect, group_starts: Collection[int], *, tidy: bool) -> str:
    texts: list[str] = []
    before = None
    for line in effective:
        # Needed if only a blank line separates groups; otherwise it is for readability.
        needed = dialect.blank_line_separates and before not in _RULES
        if before is not None and line.number in group_starts and (tidy or needed):
            texts.append("")
        texts.append(_row(line, dialect, tidy=tidy))
        before = line.field
    whole = octets("\n".join(texts))
    if _mark_length(whole, dialect) > 0 or (dialect.reads_utf16 and wide_encoding(whole)):
        # A first line that begins like a byte order mark would lose it. In the file, other text was before it.
        texts.insert(0, "")
    return "\n".join(texts) + "\n" * (tidy and bool(texts))


def _row(line: Line, dialect: Dialect, *, tidy: bool) -> str:
    # The value of Content-Usage and Content-Signal may start with a path, too.
    is_path = line.field in _RULES or (line.field is Field.UNKNOWN and line.value.startswith("/"))
    value = readable(line.value)
    if is_path and not line.value.isascii():
        # Octets that are not UTF-8 become escapes, which are equal in every dialect (M5).
        value = _STRAY_CHARACTER.sub(lambda stray: f"%{ord(stray[0]) - 0xDC00:02X}", _as_it_was(line.value))
    # A rule by tolerance that separates no groups stays what it is.
    if tidy and fields_of(dialect).separates(line.text):
        name = line.field.value.capitalize() if line.field is not Field.UNKNOWN else readable(line.name)
        text = f"{name}: {value}".rstrip(" ")
        if dialect.max_line_bytes is None or len(octets(text)) <= dialect.max_line_bytes:
            return text
    # As short as it was: the name as written, which the dialect understands.
    # If a value may have a colon, it begins with white space after that of the field.
    return f"{_as_it_was(line.name)}:{' ' * dialect.colonless_values}{_as_it_was(line.value)}"


def _as_it_was(text: str) -> str:
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "surrogateescape")
