"""Pattern: what a rule's path matches, in time linear in the URL's path whatever the pattern holds."""

from functools import lru_cache

from polite.robots.dialect import Dialect
from polite.robots.lines import octets
from polite.robots.percent import NON_ASCII_ONLY, plain_specials, spelling

# A pattern as a plain tuple of its head, its pieces and whether it is anchored: a file may hold 30,000 of these, and what
# holds nothing but texts is nothing that the garbage collector has to look into again and again.
Shape = tuple[str, tuple[str, ...], bool]
# What a rule matches: every path that starts with a text, or what a shape tells.
Matcher = str | Shape


def fits(shape: Shape, path: str) -> bool:
    """Whether a path in normal form is matched. To find each piece as far left as it goes is exact, and linear."""
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


class Pattern:
    """The path of one rule, taken apart at its wildcards (RFC 9309, 2.2.2 and 2.2.3; M1 to M4).

    `octets`: the length in normal form, which decides precedence (P1); `*`, `$` and escapes count as they stand there.
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
        return fits(self.shape, path)


class Grammar:
    """How a dialect reads paths: those of rules, which become patterns, and those of URLs, which patterns match.

    `plain_stays`: whether a path of ASCII without `%` and `#` is in normal form already.
    """

    __slots__ = ("_dialect", "_rule_spelling", "_url_spelling", "plain_stays")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        decodes, excluded = dialect.decodes_unreserved, dialect.excluded_equal_escapes
        # In a rule `%2A` and `%24` stay escaped until the pattern has been taken apart.
        self._rule_spelling = spelling(unreserved=decodes, specials=False, excluded=excluded)
        self._url_spelling = NON_ASCII_ONLY
        self.plain_stays = not excluded
        if dialect.normalises_urls:
            specials = dialect.specials_equal_escapes
            self._url_spelling = spelling(unreserved=decodes, specials=specials, excluded=excluded)

    def matcher(self, raw: str) -> tuple[int, Matcher]:
        """The octets of a rule's path, and what it matches. `raw`: as the file has it, one character per octet."""
        if "*" in raw or raw[-1:] == "$":
            octets, shape = self._taken_apart(raw)
            return octets, shape if shape[1] or shape[2] else shape[0]
        normal = self._normal(raw)
        if self._dialect.specials_equal_escapes and "%2" in normal:
            return len(normal), plain_specials(normal)
        return len(normal), normal

    def pattern(self, raw: str) -> Pattern:
        """`raw`: a rule's path as the file has it, one character per octet."""
        return Pattern(*self._taken_apart(raw))

    def _taken_apart(self, raw: str) -> tuple[int, Shape]:
        normal = self._normal(raw)
        parts, anchored = [normal], False
        if self._dialect.has_wildcards:
            anchored = normal[-1:] == "$"
            parts = (normal[:-1] if anchored else normal).split("*")
        if self._dialect.specials_equal_escapes and "%2" in normal:
            parts = [plain_specials(part) for part in parts]
        head = parts.pop(0)
        if "" in parts:
            # Behind a last `*` comes anything: nothing is tied to the end then.
            anchored = anchored and parts[-1] != ""
            parts = [part for part in parts if part]
        return len(normal), (head, tuple(parts), anchored)

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
        return self._rule_spelling(raw) if "%" in raw or not raw.isascii() or not self.plain_stays else raw


@lru_cache(maxsize=16)
def grammar(dialect: Dialect) -> Grammar:
    """The grammar of a dialect, made once."""
    return Grammar(dialect)
