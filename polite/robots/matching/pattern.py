"""Pattern: what a rule's path matches, in time linear in the URL's path whatever the pattern holds."""

from collections.abc import Sequence
from functools import lru_cache

from polite.robots.dialect import Dialect
from polite.robots.lines import octets
from polite.robots.matching.normal_form import (
    EXCLUDED,
    EXCLUDED_ONLY,
    NON_ASCII_ONLY,
    escape_normaliser,
    plain_specials,
)

# A pattern as a plain tuple of its head, its pieces and whether it is anchored: a file may hold 30,000 of these, and what
# holds nothing but texts is nothing that the garbage collector has to look into again and again.
Shape = tuple[str, tuple[str, ...], bool]
_EXCLUDED = EXCLUDED.encode("ascii")
# What a rule matches: every path that starts with a text, or what a shape tells.
Matcher = str | Shape

# Pieces of so many octets are looked for in few steps for each octet of the path, whatever they hold.
_SHORT = 16
# The octets of a path, times those of a piece: up to so many comparisons take less time than a two-way search begins with.
_FEW_STEPS = 100_000
# In texts of so many octets, and four times a piece, `str.find` is linear for each piece of six or more.
_TWO_WAY = 30_000


def shape_matches(shape: Shape, path: str) -> bool:
    """Whether a path in normal form is matched. To find each piece as far left as it goes is exact.

    It is linear if all pieces are is_linear; else `shape_matches_linearly` is.
    """
    head, pieces, anchored = shape
    if not path.startswith(head):
        return False
    position = start = len(head)
    for piece in pieces:
        start = position
        position = path.find(piece, start)
        if position < 0:
            return False
        position += len(piece)
    if not anchored or position == len(path):
        return True
    # The last piece has to stand at the end; it may be there again, behind where it was found first.
    return bool(pieces) and path.endswith(pieces[-1], start)


def is_linear(piece: str) -> bool:
    """Whether `str.find` needs steps linear in the path to look for the piece, whatever the path holds.

    CPython compares from the left at each place that might do, for pieces below its thresholds. That is slow only if the piece
    repeats its own start close by: places where the first four octets stand are as far apart as these are in the piece.
    """
    if len(piece) <= _SHORT:
        return True
    again = piece.find(piece[:4], 1)
    return again < 0 or 4 * again >= len(piece)


def shape_matches_linearly(shape: Shape, path: str) -> bool:
    """What `shape_matches` answers, in steps linear in the path although a piece is not is_linear."""
    head, pieces, anchored = shape
    longest = max(map(len, pieces), default=0)
    if longest * len(path) <= _FEW_STEPS:
        return shape_matches(shape, path)
    if not path.startswith(head):
        return False
    # In front of so many octets more, of which no rule holds one, CPython uses its two-way search, which is linear.
    wide = path.ljust(len(path) + max(_TWO_WAY, 4 * longest), "\n")
    position = start = len(head)
    for piece in pieces:
        start = position
        position = wide.find(piece, start)
        if position < 0:
            return False
        position += len(piece)
    return not anchored or position == len(path) or (bool(pieces) and path.endswith(pieces[-1], start))


def matches(matcher: Matcher, path: str) -> bool:
    """Whether a path in normal form is matched."""
    return path.startswith(matcher) if isinstance(matcher, str) else shape_matches_linearly(matcher, path)


class Pattern:
    """The path of one rule, taken apart at its wildcards (RFC 9309, 2.2.2 and 2.2.3; M1 to M4).

    `octets`: the length in normal form, which decides precedence (P1); `*`, `$` and escapes count as they stand there,
    and a character that equals its escape, though no URL holds it, counts as that.
    `shape`: its head, which what it matches starts with; its pieces, which must follow in this order, anything between
    them; and whether it is anchored, so that the path must end where it does.
    """

    __slots__ = ("octets", "shape")

    def __init__(self, octets: int, shape: Shape) -> None:
        self.octets = octets
        self.shape = shape

    @property
    def has_wildcard(self) -> bool:
        """Whether there is a `*` that matters, which one at the end does not."""
        return bool(self.shape[1])

    def matches(self, path: str) -> bool:
        """Whether it matches a path in normal form, in time linear in its length."""
        return shape_matches(self.shape, path)


class Grammar:
    """How a dialect reads paths: those of rules, which become patterns, and those of URLs, which patterns match.

    A path of ASCII without `%` and `#` is in normal form already. `plain_specials`: whether the escapes of `*` and `$` in a
    rule stand for these; in its normal form they stay until it is taken apart.
    """

    __slots__ = (
        "_dialect",
        "_excluded",
        "_rule_spelling",
        "_url_spelling",
        "has_wildcards",
        "plain_specials",
    )

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        decodes, excluded = dialect.decodes_unreserved, dialect.excluded_equal_escapes
        self._excluded = excluded
        self.has_wildcards = dialect.has_wildcards
        self.plain_specials = dialect.specials_equal_escapes
        # In a rule `%2A` and `%24` stay escaped until the pattern has been taken apart.
        self._rule_spelling = escape_normaliser(unreserved=decodes, specials=False, excluded=excluded)
        self._url_spelling = EXCLUDED_ONLY if excluded else NON_ASCII_ONLY
        if dialect.normalises_urls:
            specials = dialect.specials_equal_escapes
            self._url_spelling = escape_normaliser(unreserved=decodes, specials=specials, excluded=excluded)

    def normals(self, raws: Sequence[str]) -> Sequence[str]:
        """The normal forms of rules' paths, which are as the file has them, one character per octet.

        Nearly always they are what the file has.
        """
        together = "".join(raws)
        if "%" in together or not together.isascii():
            return [self._normal(raw) for raw in raws]
        if self._dialect.supplies_slash:
            return [raw if raw[:1] == "/" else f"/{raw}" for raw in raws]
        return raws

    def octets(self, normals: Sequence[str]) -> Sequence[int]:
        """The lengths by which precedence is decided (P1), of normal forms."""
        if self._excluded and _excluded_in("".join(normals)):
            return [len(normal) + 2 * _excluded_in(normal) for normal in normals]
        return list(map(len, normals))

    def matchers(self, raws: Sequence[str]) -> Sequence[Matcher]:
        """What rules' paths match, which are as the file has them."""
        normals = self.normals(raws)
        together = "".join(normals)
        if "*" in together or "$" in together or "%2" in together:
            return [self.matcher(normal) for normal in normals]
        return normals

    def matcher(self, normal: str) -> Matcher:
        """What a path in normal form matches."""
        if "*" in normal or normal[-1:] == "$":
            shape = self.shape(normal)
            return shape if shape[1] or shape[2] else shape[0]
        return self.plain(normal)

    def plain(self, part: str) -> str:
        """A part of a normal form without wildcards, as it stands in the paths that it matches."""
        return plain_specials(part) if self.plain_specials and "%2" in part else part

    def pattern(self, raw: str) -> Pattern:
        """`raw`: a rule's path as the file has it, one character per octet."""
        normal = self._normal(raw)
        return Pattern(self.octets((normal,))[0], self.shape(normal))

    def shape(self, normal: str) -> Shape:
        """A path in normal form, taken apart."""
        parts, anchored = [normal], False
        if self.has_wildcards:
            anchored = normal[-1:] == "$"
            parts = (normal[:-1] if anchored else normal).split("*")
        if self.plain_specials and "%2" in normal:
            parts = [plain_specials(part) for part in parts]
        head = parts.pop(0)
        if "" in parts:
            # Behind a last `*` comes anything: nothing is tied to the end then.
            anchored = anchored and parts[-1] != ""
            parts = [part for part in parts if part]
        return head, tuple(parts), anchored

    def path(self, url_path: str) -> str:
        """The normal form of a URL's path and query. A fragment is dropped; non-ASCII stands for its UTF-8."""
        if "#" in url_path:
            url_path = url_path.partition("#")[0]
        if not url_path.isascii():
            url_path = octets(url_path).decode("latin-1")
        return self._url_spelling(url_path)

    def _normal(self, raw: str) -> str:
        if raw[:1] != "/" and self._dialect.supplies_slash:
            raw = "/" + raw
        return self._rule_spelling(raw) if "%" in raw or not raw.isascii() else raw


def _excluded_in(normal: str) -> int:
    """How many characters that no URL holds, and whose escapes have three octets, are in a normal form."""
    octets = normal.encode("ascii")
    return len(octets) - len(octets.translate(None, _EXCLUDED))


@lru_cache(maxsize=16)
def grammar(dialect: Dialect) -> Grammar:
    """The grammar of a dialect, made once."""
    return Grammar(dialect)
