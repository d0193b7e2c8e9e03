"""Pattern: what a rule's path matches, in time linear in the URL's path whatever the pattern holds."""

from functools import lru_cache

from polite.robots.dialect import Dialect
from polite.robots.lines import octets
from polite.robots.percent import NON_ASCII_ONLY, plain_specials, spelling


class Pattern:
    """The path of one rule, taken apart at its wildcards (RFC 9309, 2.2.2 and 2.2.3; M1 to M4).

    `head`: what every path that matches starts with. `pieces`: what must follow, in this order, anything between them.
    `octets`: the length in normal form, which decides precedence (P1); `*`, `$` and escapes count as they stand there.
    `anchored`: the path must end where the pattern does; a `*` at the end takes that away.
    """

    __slots__ = ("anchored", "head", "octets", "pieces")

    def __init__(self, length: int, head: str, after_stars: list[str], *, anchored: bool) -> None:
        """`after_stars`: the literal text after each `*`. `anchored`: a `$` stands at the end."""
        self.octets = length
        self.head = head
        # Behind a last `*` comes anything: nothing is tied to the end then.
        self.anchored = anchored and (not after_stars or after_stars[-1] != "")
        self.pieces = [piece for piece in after_stars if piece] if "" in after_stars else after_stars

    @property
    def has_wildcard(self) -> bool:
        """Whether there is a `*` that matters, which one at the end does not."""
        return bool(self.pieces)

    @property
    def literal(self) -> bool:
        """Whether every path that starts with the head matches."""
        return not self.pieces and not self.anchored

    def matches(self, path: str) -> bool:
        """Whether it matches a path in normal form. To find each piece as far left as it goes is exact."""
        if not path.startswith(self.head):
            return False
        position = len(self.head)
        for piece in self.pieces:
            start = position
            position = path.find(piece, start)
            if position < 0:
                return False
            position += len(piece)
        if not self.anchored or position == len(path):
            return True
        # The last piece has to stand at the end; it may be there again, behind where it was found first.
        return bool(self.pieces) and path.endswith(self.pieces[-1], start)


# What a rule matches: every path that starts with a text, or a pattern.
Matcher = str | Pattern


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
        """The octets of a rule's path, and what it matches: paths that start with a text, or a pattern of more."""
        if "*" in raw or raw[-1:] == "$":
            pattern = self.pattern(raw)
            return pattern.octets, pattern.head if pattern.literal else pattern
        normal = self._normal(raw)
        if self._dialect.specials_equal_escapes and "%2" in normal:
            return len(normal), plain_specials(normal)
        return len(normal), normal

    def pattern(self, raw: str) -> Pattern:
        """`raw`: a rule's path as the file has it, one character per octet."""
        normal = self._normal(raw)
        parts, anchored = [normal], False
        if self._dialect.has_wildcards:
            anchored = normal[-1:] == "$"
            parts = (normal[:-1] if anchored else normal).split("*")
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

    def _normal(self, raw: str) -> str:
        if raw[:1] != "/" and self._dialect.supplies_slash:
            raw = "/" + raw
        return self._rule_spelling(raw) if "%" in raw or not raw.isascii() or not self.plain_stays else raw


@lru_cache(maxsize=16)
def grammar(dialect: Dialect) -> Grammar:
    """The grammar of a dialect, made once."""
    return Grammar(dialect)
