"""Pattern: what a rule's path matches, in time linear in the URL's path whatever the pattern holds."""

from functools import lru_cache

from polite.robots.dialect import Dialect
from polite.robots.lines import octets
from polite.robots.percent import NON_ASCII_ONLY, plain_specials, spelling


class Pattern:
    """The path of one rule, taken apart at its wildcards (RFC 9309, 2.2.2 and 2.2.3; M1 to M4).

    `head`: what every path that matches starts with. `octets`: the length in normal form, which decides
    precedence (P1); `*`, `$` and escapes count as they stand there. `has_wildcard`: a `*` that matters, which
    one at the end does not.
    """

    __slots__ = ("_anchored", "_middles", "_tail", "has_wildcard", "head", "octets")

    def __init__(self, length: int, head: str, after_stars: list[str], *, anchored: bool) -> None:
        """`after_stars`: the literal text after each `*`. `anchored`: the whole is tied to the path's end."""
        self.octets = length
        self.head = head
        # Behind a last `*` comes anything: nothing is tied to the end then.
        self._anchored = anchored and (not after_stars or after_stars[-1] != "")
        pieces = [piece for piece in after_stars if piece]
        self.has_wildcard = bool(pieces)
        self._tail = pieces.pop() if self._anchored and pieces else ""
        self._middles = pieces

    def matches(self, path: str) -> bool:
        """Whether it matches a path in normal form. To find each piece as far left as it goes is exact."""
        if not path.startswith(self.head):
            return False
        position = len(self.head)
        for piece in self._middles:
            found = path.find(piece, position)
            if found < 0:
                return False
            position = found + len(piece)
        if not self._anchored:
            return True
        return path.endswith(self._tail, position) if self._tail else position == len(path)


class Grammar:
    """How a dialect reads paths: those of rules, which become patterns, and those of URLs, which patterns match."""

    __slots__ = ("_dialect", "_rule_spelling", "_url_spelling")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        decodes, excluded = dialect.decodes_unreserved, dialect.excluded_equal_escapes
        # In a rule `%2A` and `%24` stay escaped until the pattern has been taken apart.
        self._rule_spelling = spelling(unreserved=decodes, specials=False, excluded=excluded)
        self._url_spelling = NON_ASCII_ONLY
        if dialect.normalises_urls:
            specials = dialect.specials_equal_escapes
            self._url_spelling = spelling(unreserved=decodes, specials=specials, excluded=excluded)

    def pattern(self, raw: str) -> Pattern:
        """`raw`: a rule's path as the file has it, one character per octet."""
        if self._dialect.supplies_slash and not raw.startswith("/"):
            raw = "/" + raw
        normal = self._rule_spelling(raw)
        parts, anchored = [normal], False
        if self._dialect.has_wildcards:
            anchored = normal.endswith("$")
            parts = normal.removesuffix("$").split("*")
        if self._dialect.specials_equal_escapes and "%2" in normal:
            parts = [plain_specials(part) for part in parts]
        return Pattern(len(normal), parts[0], parts[1:], anchored=anchored)

    def path(self, url_path: str) -> str:
        """The normal form of a URL's path and query. A fragment is dropped; non-ASCII stands for its UTF-8."""
        if "#" in url_path:
            url_path = url_path.partition("#")[0]
        if not url_path.isascii():
            url_path = octets(url_path).decode("latin-1")
        return self._url_spelling(url_path)


@lru_cache(maxsize=16)
def grammar(dialect: Dialect) -> Grammar:
    """The grammar of a dialect, made once."""
    return Grammar(dialect)
