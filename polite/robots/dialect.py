"""Dialect: every point on which the documents differ, as named fields; and five dialects."""

from dataclasses import dataclass, fields, replace
from enum import Enum

from polite.errors import InvalidOption
from polite.options import boolean, integer, statuses


class Lifetime:
    """A target of weak references that stands for its owner."""

    __slots__ = ("__weakref__",)


def let_threads_switch() -> None:
    """Let another thread run, if one has waited for its turn (`sys.getswitchinterval`, 5 ms).

    The interpreter switches threads when a Python function is called, among other moments. Compiled code never does by itself: a
    thread that computes would hold the event loop until it ends. So this function is empty, this file is never compiled, and
    loops that may take more than a few milliseconds call it.
    """


class WildcardConflict(Enum):
    """When a document leaves the order of a wildcard rule and an opposed rule undefined (P3).

    Attributes:
        DEFINED: never: length decides, with or without wildcards.
        UNDEFINED_UNLESS_TIED: always, unless both are of equal length: then the least restrictive rule is used.
        UNDEFINED: always.
    """

    DEFINED = "length decides, with or without wildcards"
    UNDEFINED_UNLESS_TIED = "undefined, but at equal length the least restrictive rule is used"
    UNDEFINED = "undefined"


# Google's library accepts these, and most of them forbid. It also accepts "site-map", which allows and forbids nothing.
_FREQUENT_MISSPELLINGS = (
    *((written, "user-agent") for written in ("useragent", "user agent")),
    *((written, "disallow") for written in ("dissallow", "dissalow", "disalow", "diasllow", "disallaw")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a robots.txt is read. The defaults are those of `RFC9309`.

    Derive your own with `dataclasses.replace`. RFC 9309 is silent about lines that break its grammar. By default such a
    line is read as its author evidently meant it if that can forbid more; a line that could only allow more is ignored.

        >>> from dataclasses import replace
        >>> from polite import RFC9309, parse
        >>> strict = replace(RFC9309, name="strict", colon_optional=False)
        >>> parse("User-agent: *\\nDisallow /a", strict).rules_for("ExampleBot").allows("/a")
        True

    Attributes:
        name: the dialect's name in messages.

        max_bytes: octets of the body that count (H9, F1).
        max_line_bytes: octets of a line that count, or None for all.
        reads_utf16: decode a body that starts with the byte order mark of UTF-16 or UTF-32 (F1).
        skips_partial_bom: also remove an incomplete byte order mark (F4).
        nul_ends_line: ignore the rest of a line after a NUL, as in a C string.
        misspellings: pairs of lower-case texts (as written, what is meant) of fields that are accepted (F7).
        extends_fields: the names that a field need only start with, or with a misspelling of them: `Disallow; /a`,
            `disallow-all: /a`. Google's library accepts what starts with any name it knows.
        extends_by_words: such a line counts like any other, whatever follows the name. Otherwise only if that is an `s` or begins
            with no letter, digit, `-` or `_`: `User-agents`, `Disallow;`. A longer `disallow-all` is a rule that separates no
            groups then, and anything else, such as `user-agent-note`, is unknown: so neither can allow more.
        colon_optional: a line of exactly two words needs no colon.
        colonless_values: with `colon_optional`, a line without a colon may have a value of any words, or none, and a colon before
            anything but white space may be part of the value: `visit-time 0200 0630`, `Sitemap https://example.com/s.xml`.
        allow_needs_colon: an Allow always needs its colon, since ignoring the line allows less.

        blank_line_separates: a user-agent line after a blank line starts a new group (G2).
        any_field_ends_agents: any field between two user-agent lines (Crawl-delay or an unknown one, but not Sitemap) starts
            a new group. Otherwise only a rule does (G1).
        combines_groups: all groups with a name apply together. Otherwise only the first one applies (G5).
        derives_general_names: a crawler named `a-b` falls back to `a` (A3).
        lettered_names_only: a name with a digit is never found in a file (A5).

        has_allow: Allow is a rule (P4).
        has_wildcards: `*` and a last `$` are special (M4).
        supplies_slash: a path without its first slash gets one (M3).
        wildcard_conflict: when a conflict with a wildcard rule is undefined (P3). The longer rule decides nevertheless.
        dollar_is_both: a last `$` also means itself: `/a$` is the path `/a`, and all that start with `/a$`.
        index_is_folder: an Allow of `/a/index.htm...` also allows `/a/`.
        exempts_robots_txt: `/robots.txt` may always be fetched (RFC 9309, 2.2.2).

        decodes_unreserved: `%62` equals `b` in rules and URLs. (RFC 9309, 2.2.2; octets outside ASCII equal their escapes in
            every dialect, M5.)
        specials_equal_escapes: `%2A` and `%24` in a rule mean `*` and `$` themselves, escaped or not (RFC 9309, 2.2.3).
        excluded_equal_escapes: ASCII characters that RFC 3986 excludes from URLs (space, `"<>\\^{|}` and more) equal their escapes,
            and count as escapes for the longest match. No URL contains them, so `Disallow: /my files/` would match nothing.
            The same holds for `'`, which URL parsers escape in a query only.
        reserved_equal_escapes: reserved characters (RFC 3986, 2.2) equal their escapes in rules and URLs: `:` and `%3A`, `?` and
            `%3F`, `/` and `%2F`. This is the literal reading of the table in RFC 9309, 2.2.2, whose second row escapes a colon
            and slashes. The text above that table excludes reserved characters, and so do the five dialects. `*` and `$`
            follow `specials_equal_escapes`. An escape counts as one octet for the longest match.
        escaped_slash_differs: with `reserved_equal_escapes`, `%2F` differs from `/` nevertheless.
        normalises_urls: URLs are brought to the rules' normal form (hexadecimal digits, too), not only rules.

        denied_statuses: 4xx responses that count as a server error, not as "no restriction" (H4).
        forgives_unreachable: after `RobotsPolicy.unreachable_limit` without a response the last copy decides, or all is allowed if
            there is none (H6). Otherwise an unreachable site stays disallowed until it responds.

    Raises:
        InvalidOption: if a field's value is invalid.
    """

    name: str
    max_bytes: int = 512_000
    max_line_bytes: int | None = None
    reads_utf16: bool = True
    skips_partial_bom: bool = False
    nul_ends_line: bool = False
    misspellings: tuple[tuple[str, str], ...] = _FREQUENT_MISSPELLINGS
    extends_fields: tuple[str, ...] = ("user-agent", "disallow")
    extends_by_words: bool = False
    colon_optional: bool = True
    colonless_values: bool = False
    allow_needs_colon: bool = True
    blank_line_separates: bool = False
    any_field_ends_agents: bool = False
    combines_groups: bool = True
    derives_general_names: bool = False
    lettered_names_only: bool = False
    has_allow: bool = True
    has_wildcards: bool = True
    supplies_slash: bool = False
    wildcard_conflict: WildcardConflict = WildcardConflict.DEFINED
    dollar_is_both: bool = False
    index_is_folder: bool = False
    exempts_robots_txt: bool = True
    decodes_unreserved: bool = True
    specials_equal_escapes: bool = True
    excluded_equal_escapes: bool = True
    reserved_equal_escapes: bool = False
    escaped_slash_differs: bool = False
    normalises_urls: bool = True
    denied_statuses: frozenset[int] = frozenset()
    forgives_unreachable: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            if isinstance(field.default, bool):
                boolean(f"Dialect: {field.name}", getattr(self, field.name))
        integer("Dialect: max_bytes", self.max_bytes, least=1)
        if self.max_line_bytes is not None:
            integer("Dialect: max_line_bytes", self.max_line_bytes, least=1)
        conflict: object = self.wildcard_conflict
        if not isinstance(conflict, WildcardConflict):
            raise self._invalid("wildcard_conflict", "must be a WildcardConflict")
        statuses("Dialect: denied_statuses", self.denied_statuses, least=400, most=499)
        misspellings, extended, names = self.misspellings, self.extends_fields, sorted(_FIELDS)
        if not _is_tuple(misspellings) or not all(map(_is_misspelling, misspellings)):
            raise self._invalid(
                "misspellings", f"must be pairs of lower-case texts (as written, one of {names})"
            )
        if not _is_tuple(extended) or not all(name in names for name in extended):
            raise self._invalid("extends_fields", f"must be a tuple of names, each one of {names}")

    def __hash__(self) -> int:
        # Hot path: the hash of all fields takes 1 us, and each file that is read asks for it three times.
        return hash(self.name)

    def _invalid(self, name: str, needed: str) -> InvalidOption:
        return InvalidOption(f"Dialect: {name} {needed}, got {getattr(self, name)!r}")


_FIELDS = {"user-agent", "allow", "disallow", "sitemap", "crawl-delay", "request-rate", "visit-time", "host"}


def _is_tuple(value: object) -> bool:
    return isinstance(value, tuple)


def _is_misspelling(pair: object) -> bool:
    match pair:
        case (str() as written, str() as meant):
            return bool(written) and written == written.lower() and meant in _FIELDS
        case _:
            return False


RFC9309 = Dialect(name="rfc9309")
"""RFC 9309, and where it is silent the reading that forbids more. The default."""

# The reading of a document alone: no leniency that the document does not state.
_AS_DOCUMENTED = replace(
    RFC9309,
    name="as documented",
    reads_utf16=False,
    misspellings=(),
    extends_fields=(),
    colon_optional=False,
    derives_general_names=True,
    excluded_equal_escapes=False,
)

CLASSIC = replace(
    _AS_DOCUMENTED,
    name="classic",
    blank_line_separates=True,
    has_allow=False,
    has_wildcards=False,
    exempts_robots_txt=False,
    # The document is silent about servers that fail; silence allows nothing.
    forgives_unreachable=False,
)
"""The convention of 1994, as a large search engine documented it in 2007: prefixes of Disallow only."""

GOOGLE_2010 = replace(
    _AS_DOCUMENTED,
    name="google-2010",
    # The document leaves misspelled fields undefined. Most of them forbid, so accepting them is the careful reading.
    misspellings=(*_FREQUENT_MISSPELLINGS, ("site-map", "sitemap")),
    combines_groups=False,
    supplies_slash=True,
    wildcard_conflict=WildcardConflict.UNDEFINED,
    exempts_robots_txt=False,
    # The document leaves lasting server errors undefined; the thirty days came with its successor.
    forgives_unreachable=False,
)
"""Google's first specification, of 2010: Allow, `*`, `$` and the longest path. Much is undefined."""

GOOGLE_2019 = replace(
    _AS_DOCUMENTED,
    name="google-2019",
    wildcard_conflict=WildcardConflict.UNDEFINED_UNLESS_TIED,
    exempts_robots_txt=False,
)
"""Google's second specification, of 2019: the draft that became RFC 9309."""

GOOGLE = replace(
    _AS_DOCUMENTED,
    name="google",
    max_line_bytes=2083 * 8 - 1,
    skips_partial_bom=True,
    nul_ends_line=True,
    misspellings=(*_FREQUENT_MISSPELLINGS, ("site-map", "sitemap")),
    extends_fields=("user-agent", "allow", "disallow", "sitemap"),
    extends_by_words=True,
    colon_optional=True,
    allow_needs_colon=False,
    derives_general_names=False,
    lettered_names_only=True,
    index_is_folder=True,
    exempts_robots_txt=False,
    decodes_unreserved=False,
    specials_equal_escapes=False,
    normalises_urls=False,
    # Google slows down for 429 and treats it like a 5xx, as "temporarily unable".
    denied_statuses=frozenset({429}),
)
"""The behaviour of Google's published matcher."""

BY_NAME = {each.name: each for each in (CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE)}


def dialect(name: str) -> Dialect:
    """Return a dialect by name: classic, google-2010, google-2019, rfc9309 or google.

        >>> dialect("google").max_line_bytes
        16663

    Raises:
        InvalidOption: if there is no dialect of this name.
    """
    if name not in BY_NAME:
        raise InvalidOption(f"there is no dialect {name!r}: the dialects are {', '.join(BY_NAME)}")
    return BY_NAME[name]
