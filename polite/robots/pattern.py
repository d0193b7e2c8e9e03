"""Pattern: what a rule's path matches, in time linear in the URL's path for any pattern."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from string import ascii_letters, digits
from typing import NamedTuple

from polite.robots.dialect import Dialect
from polite.robots.lines import octets

UNRESERVED = ascii_letters + digits + "-._~"
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
    """Rewrites percent-escapes in a text of one character per octet. Linear.

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
        pieces: list[str] = []
        start = 0
        while start < len(text):
            stop = start + _AT_A_TIME
            # No escape is cut: it may begin with one of the last two characters, and end in the next piece.
            escape = text.find("%", stop - 2, stop)
            stop = stop if escape < 0 else escape
            pieces.append(self._rewritten(text[start:stop]))
            start = stop
        return "".join(pieces)

    def _rewritten(self, text: str) -> str:
        if self._escapes and "%" in text:
            find = self._escapes.get
            before, *parts = text.split("%")
            text = before + "".join([(find(part[:2]) or f"%{part[:2]}") + part[2:] for part in parts])
        if not text.isascii():
            # These escapes are in normal form.
            text = "".join(map(_ESCAPED.__getitem__, text.encode("latin-1")))
        return text


@lru_cache(maxsize=16)
def normaliser(decoded: str | None, *, upper: bool = True) -> EscapeNormaliser:
    """Return an EscapeNormaliser. Dialects share them, since a table takes half a millisecond to make."""
    return EscapeNormaliser(decoded, upper=upper)


# A pattern as a plain tuple: its head, its pieces, and whether it is anchored. A file may have 30,000 of these, and the garbage
# collector does not track tuples that hold only texts.
Shape = tuple[str, tuple[str, ...], bool]
_EXCLUDED = EXCLUDED.encode("ascii")
# What a rule matches: every path that starts with a text, or every path of a shape.
Matcher = str | Shape

# Pieces of up to this many octets need few steps for each octet of the path, whatever they contain.
_SHORT = 16
# Octets of a path times those of a piece: up to this many comparisons take less time than setting up a two-way search.
_FEW_STEPS = 100_000
# Paths and shapes that are kept for the next file, and the octets of the longest of them.
_MOST_SHARED = 4_000
_LONGEST_SHARED = 40
# Larger files are few, and a hostile one must not fill the table.
_MOST_RULES_SHARED = 64
# In texts of this many octets, and of four times the piece, `str.find` is linear for pieces of six octets or more.
_TWO_WAY = 30_000


def shape_matches(shape: Shape, path: str, padded: str | None = None) -> bool:
    """Return whether a path in normal form has this shape.

    To search each piece as far left as possible is exact. Linear if `is_linear` holds for all pieces; otherwise use
    `shape_matches_linearly`, which passes the path with padding behind it.
    """
    head, pieces, anchored = shape
    if not path.startswith(head):
        return False
    text = path if padded is None else padded
    position = start = len(head)
    for piece in pieces:
        start = position
        position = text.find(piece, start)
        if position < 0:
            return False
        position += len(piece)
    if not anchored or position == len(path):
        return True
    # The last piece must end the path. It may occur there again, behind its leftmost occurrence.
    return bool(pieces) and path.endswith(pieces[-1], start)


def is_linear(piece: str) -> bool:
    """Return whether `str.find` searches for the piece in time linear in any path.

    Below its thresholds, CPython compares from the left at each candidate position. That is quadratic only if the piece
    repeats its own first four octets close to its start: candidate positions are as far apart as these octets are in
    the piece.
    """
    if len(piece) <= _SHORT:
        return True
    again = piece.find(piece[:4], 1)
    return again < 0 or 4 * again >= len(piece)


def shape_matches_linearly(shape: Shape, path: str) -> bool:
    """Return what `shape_matches` returns, in linear time for pieces that are not `is_linear`."""
    longest = max(map(len, shape[1]), default=0)
    if longest * len(path) <= _FEW_STEPS:
        return shape_matches(shape, path)
    # Padded with octets that no rule has, the text is long enough for CPython to use its two-way search (Crochemore and Perrin,
    # 1991), which is linear.
    return shape_matches(shape, path, path.ljust(len(path) + max(_TWO_WAY, 4 * longest), "\n"))


def matches(matcher: Matcher, path: str) -> bool:
    """Return whether a path in normal form is matched."""
    return path.startswith(matcher) if isinstance(matcher, str) else shape_matches_linearly(matcher, path)


class Pattern(NamedTuple):
    """The path of one rule, split at its wildcards (RFC 9309, 2.2.2 and 2.2.3; M1 to M4).

    Attributes:
        octets: the length in normal form, which decides precedence (P1). `*`, `$` and escapes count as they stand in the normal
            form. A character that RFC 3986 excludes from URLs counts as its escape, three octets.
        shape: the literal head; the pieces that must follow in this order, with any text between them; and whether the
            pattern is anchored by a last `$`.
    """

    octets: int
    shape: Shape

    def matches(self, path: str) -> bool:
        """Return whether it matches a path in normal form, in time linear in its length."""
        return shape_matches_linearly(self.shape, path)


class Grammar:
    """How a dialect reads paths: those of rules, which become patterns, and those of URLs.

    A path of ASCII without `%` and `#` is in normal form already.

    Attributes:
        has_wildcards: whether `*` and `$` are special.
        plain_specials: whether `%2A` and `%24` in a rule mean `*` and `$` themselves. In the normal form they stay escaped
            until the pattern is split.
    """

    __slots__ = (
        "_dialect",
        "_paths",
        "_rule_spelling",
        "_shapes",
        "_url_spelling",
        "has_wildcards",
        "plain_specials",
    )

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.has_wildcards: bool = dialect.has_wildcards
        self.plain_specials: bool = dialect.specials_equal_escapes
        self._paths: dict[str, str] = {}
        self._shapes: dict[str, Shape] = {}
        reserved = RESERVED if dialect.reserved_equal_escapes else ""
        if dialect.escaped_slash_differs:
            reserved = reserved.replace("/", "")
        # Decoding (instead of encoding) has the effect that a URL without "%" is in normal form already. URL parsers escape `'` in
        # a query but not in a path, so both forms are equal.
        equal = (EXCLUDED + "'") * dialect.excluded_equal_escapes + reserved
        decoded = equal + UNRESERVED * dialect.decodes_unreserved
        # In a rule `%2A` and `%24` stay escaped until the pattern is split.
        self._rule_spelling = normaliser(decoded)
        self._url_spelling = (
            normaliser(decoded + _SPECIALS * dialect.specials_equal_escapes)
            if dialect.normalises_urls
            else normaliser(equal or None, upper=False)
        )

    def __reduce__(self) -> tuple[Callable[[Dialect], "Grammar"], tuple[Dialect]]:
        # What it keeps for the next file is of other sites.
        return grammar, (self._dialect,)

    def rereads(self, raws: Sequence[str]) -> bool:
        """Return whether any of these rules' paths has more than one of `readings`. Rarely wrong, and then True."""
        if self._dialect.index_is_folder and "index.htm" in "\n".join(raws):
            return True
        return self._dialect.dollar_is_both and self.has_wildcards and any(raw[-1:] == "$" for raw in raws)

    def readings(self, raw: str, *, allows: bool) -> tuple[str, ...]:
        """Return the paths for which a rule's path stands: itself, and what the dialect adds.

        That is the folder of an index page that is allowed, and the path with a literal `$` instead of its end.
        """
        found = [raw]
        if self._dialect.dollar_is_both and self.has_wildcards and raw[-1:] == "$":
            # A `$` before a `*` is an ordinary character.
            found.append(f"{raw}*")
        if self._dialect.index_is_folder and allows:
            folder, slash, page = raw.rpartition("/")
            if slash and page.startswith("index.htm"):
                found.append(f"{folder}/$")
        return tuple(found)

    def normals(self, raws: Sequence[str]) -> Sequence[str]:
        """Return the normal forms of rules' paths as written, one character per octet.

        Nearly always the normal form is the path as written, and the argument is returned.
        """
        if self._dialect.supplies_slash:
            raws = [raw if raw[:1] == "/" else f"/{raw}" for raw in raws]
        # LF is in no rule, and in no escape.
        together = "\n".join(raws)
        if "%" in together or not together.isascii():
            rewritten = self._rule_spelling(together).split("\n")
            # The same object where nothing changed: it is kept for long.
            return [raw if raw == new else new for raw, new in zip(raws, rewritten, strict=True)]
        return raws

    def octets(self, normals: Sequence[str]) -> Sequence[int]:
        """Return the lengths of normal forms by which precedence is decided (P1)."""
        if self._dialect.excluded_equal_escapes:
            # LF is in no rule, and is not excluded.
            together = "\n".join(normals).encode("ascii")
            rest = together.translate(None, _EXCLUDED)
            if len(rest) < len(together):
                kept = map(len, rest.split(b"\n"))
                return [3 * length - 2 * each for length, each in zip(map(len, normals), kept, strict=True)]
        return list(map(len, normals))

    def matchers(self, raws: Sequence[str]) -> Sequence[Matcher]:
        """Return what a few rules' paths (as written) match."""
        normals = self.normals(raws)
        together = "".join(normals)
        if "*" in together or "$" in together or "%2" in together:
            return [self.matcher(normal, shared=True) for normal in normals]
        return normals

    def matcher(self, normal: str, *, shared: bool = False) -> Matcher:
        """Return what a rule's path in normal form matches. `shared`: made once for the sites that have the same rule."""
        if "*" in normal or normal[-1:] == "$":
            shape = self.shared_shape(normal) if shared else self.shape(normal)
            return shape if shape[1] or shape[2] else shape[0]
        return self.plain(normal)

    def plain(self, part: str) -> str:
        """Return a part (no wildcard) of a normal form as it stands in the paths that it matches."""
        if self.plain_specials and "%2" in part:
            return part.replace("%2A", "*").replace("%24", "$")
        return part

    def pattern(self, raw: str) -> Pattern:
        """Return the pattern of a rule's path as written, one character per octet."""
        normals = self.normals((raw,))
        return Pattern(self.octets(normals)[0], self.shape(normals[0]))

    def shape(self, normal: str) -> Shape:
        """Split a rule's path in normal form at its wildcards."""
        parts, anchored = [normal], False
        if self.has_wildcards:
            anchored = normal[-1:] == "$"
            parts = (normal[:-1] if anchored else normal).split("*")
        if self.plain_specials and "%2" in normal:
            parts = [self.plain(part) for part in parts]
        head = parts.pop(0)
        if "" in parts:
            # After a last `*` any text may follow, so the pattern is not anchored.
            anchored = anchored and parts[-1] != ""
            parts = [part for part in parts if part]
        return head, tuple(parts), anchored

    def shared_shape(self, normal: str) -> Shape:
        """Return what `shape` returns, made once for the sites that have the same rule: many have."""
        shape = self._shapes.get(normal)
        if shape is None:
            shape = self.shape(normal)
            if len(normal) <= _LONGEST_SHARED:
                if len(self._shapes) >= _MOST_SHARED:
                    self._shapes.clear()
                self._shapes[normal] = shape
        return shape

    def shared(self, raws: Sequence[str]) -> tuple[str, ...]:
        """Return the same paths. If they are few, those that other sites have, too, are the same objects."""
        if len(raws) > _MOST_RULES_SHARED or len("".join(raws)) > _MOST_RULES_SHARED * _LONGEST_SHARED:
            return tuple(raws)
        known = self._paths
        if len(known) >= _MOST_SHARED:
            known.clear()
        return tuple(map(known.setdefault, raws, raws))

    def path(self, url_path: str) -> str:
        """Return a URL's path and query in normal form: without fragment, non-ASCII as UTF-8."""
        if "#" in url_path:
            url_path = url_path.partition("#")[0]
        if not url_path.isascii():
            url_path = octets(url_path).decode("latin-1")
        return self._url_spelling(url_path)


@lru_cache(maxsize=16)
def grammar(dialect: Dialect) -> Grammar:
    """Return the grammar of a dialect. Each is made once."""
    return Grammar(dialect)
