"""Dialect: every point on which the documents differ, as named fields, and the five dialects."""

from dataclasses import dataclass, fields, replace
from enum import Enum

from polite.errors import InvalidOption


class WildcardConflict(Enum):
    """When the order of a rule with `*` and an opposed rule is what a document calls undefined (P3)."""

    DEFINED = "length decides, with wildcards or without"
    UNDEFINED_UNLESS_TIED = "undefined, but at equal length the least restrictive rule is used"
    UNDEFINED = "undefined"


# Google's library reads these, and they mostly forbid. It reads "site-map" too, which is no matter of what is allowed.
_FREQUENT_MISSPELLINGS = (
    ("useragent", "user-agent"),
    ("user agent", "user-agent"),
    ("dissallow", "disallow"),
    ("dissalow", "disallow"),
    ("disalow", "disallow"),
    ("diasllow", "disallow"),
    ("disallaw", "disallow"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a file is read. The defaults are those of `RFC9309`; make your own with `dataclasses.replace`. Raises InvalidOption.

    RFC 9309 is silent about lines that break its grammar. By default such a line is read as what its author evidently
    meant, where that can forbid more; what only ever allows more is not read.

    The file:
    - `max_bytes`: octets of the body that count (H9, F1).
    - `max_line_bytes`: octets of a line that count, or None for all.
    - `reads_utf16`: a body with the byte order mark of UTF-16 or UTF-32 is read in that encoding (F1).
    - `skips_partial_bom`: the first octets of a cut byte order mark are dropped too, not only a whole one (F4).
    - `nul_ends_line`: what follows a NUL in a line is ignored, as in a C string.
    - `misspellings`: pairs (as written, what is meant), both lower-case, of fields that are accepted (F7).
    - `extends_fields`: a field that only starts with a known name is that field: `disallow-all:`.
    - `colon_optional`: a line of exactly two words needs no colon.
    - `allow_needs_colon`: an Allow needs its colon all the same, since without this line less is allowed.

    Groups:
    - `blank_line_separates`: a user-agent line after a blank line starts a new group (G2).
    - `any_field_ends_agents`: a field that is no rule (Crawl-delay, an unknown one, but never Sitemap) between two
      user-agent lines parts them; otherwise only a rule does (G1).
    - `combines_groups`: all groups of a name hold together; otherwise the first alone (G5).
    - `derives_general_names`: a crawler named `a-b` falls back to `a` without being told so (A3).
    - `lettered_names_only`: a name with a digit in it can never be found in a file (A5).

    Rules:
    - `has_allow`: Allow is a rule (P4).
    - `has_wildcards`: `*` and a last `$` are special (M4).
    - `supplies_slash`: a path that lacks its first slash gets one (M3).
    - `wildcard_conflict`: when a conflict with a wildcard rule is undefined (P3). The longer rule is used all the same.
    - `index_is_folder`: an Allow of `/a/index.htm...` allows `/a/` itself too.
    - `exempts_robots_txt`: `/robots.txt` may always be fetched (RFC 9309, 2.2.2).

    Characters (RFC 9309, 2.2.2 and 2.2.3). Octets outside ASCII equal their escapes in every dialect (M5).
    - `decodes_unreserved`: `%62` equals `b` in rule and URL; reserved characters never equal their escapes.
    - `specials_equal_escapes`: `%2A` and `%24` in a rule are the plain characters, and match them escaped or not.
    - `excluded_equal_escapes`: ASCII characters that RFC 3986 excludes from URLs (space, `"<>\\^{|}` and more) equal their
      escapes, and count as these where the longest rule is found. No URL holds them, so that `Disallow: /my files/` would
      match nothing. So does `'`, which URL parsers escape in a query only.
    - `normalises_urls`: the URL is brought to the rules' spelling (hexadecimal digits too), not only the rules.

    The fetch:
    - `denied_statuses`: the 4xx answers that count as a server error, not as "no restriction" (H4).
    - `forgives_unreachable`: after `RobotsPolicy.unreachable_limit` without an answer the last copy decides, or, with none, all is
      allowed (H6); otherwise a site that cannot be reached stays as it is until it answers.
    """

    name: str
    max_bytes: int = 512_000
    max_line_bytes: int | None = None
    reads_utf16: bool = True
    skips_partial_bom: bool = False
    nul_ends_line: bool = False
    misspellings: tuple[tuple[str, str], ...] = _FREQUENT_MISSPELLINGS
    extends_fields: bool = False
    colon_optional: bool = True
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
    index_is_folder: bool = False
    exempts_robots_txt: bool = True
    decodes_unreserved: bool = True
    specials_equal_escapes: bool = True
    excluded_equal_escapes: bool = True
    normalises_urls: bool = True
    denied_statuses: frozenset[int] = frozenset()
    forgives_unreachable: bool = True

    def __post_init__(self) -> None:
        """Raises InvalidOption for what cannot be a dialect, and would read files as nobody means it."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, bool) and not isinstance(value, bool):
                raise self._odd(field.name, "True or False is needed")
        if not _counts(self.max_bytes):
            raise self._odd("max_bytes", "a number of octets, 1 or more, is needed")
        if self.max_line_bytes is not None and not _counts(self.max_line_bytes):
            raise self._odd("max_line_bytes", "a number of octets, 1 or more, or None is needed")
        conflict: object = self.wildcard_conflict
        if not isinstance(conflict, WildcardConflict):
            raise self._odd("wildcard_conflict", "a WildcardConflict is needed")
        if not all(map(_is_misspelling, self.misspellings)):
            raise self._odd(
                "misspellings", f"pairs of lower-case texts (as written, one of {sorted(_FIELDS)}) are needed"
            )

    def _odd(self, name: str, needed: str) -> InvalidOption:
        return InvalidOption(f"Dialect.{name}={getattr(self, name)!r}: {needed}")


_FIELDS = {"user-agent", "allow", "disallow", "sitemap", "crawl-delay", "request-rate", "visit-time", "host"}


def _counts(value: object) -> bool:
    return type(value) is int and value >= 1


def _is_misspelling(pair: object) -> bool:
    match pair:
        case (str() as written, str() as meant):
            return bool(written) and written == written.lower() and meant in _FIELDS
        case _:
            return False


RFC9309 = Dialect(name="rfc9309")

# What stands in no document is not read: each of these fields gives the strict reading of its own.
_AS_DOCUMENTED = replace(
    RFC9309,
    name="as documented",
    reads_utf16=False,
    misspellings=(),
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
    # The document says nothing of servers that fail; nobody is allowed anything by that.
    forgives_unreachable=False,
)

GOOGLE_2010 = replace(
    _AS_DOCUMENTED,
    name="google-2010",
    # The document leaves misspelled fields undefined: understood, they mostly forbid, and that is the careful reading.
    misspellings=(*_FREQUENT_MISSPELLINGS, ("site-map", "sitemap")),
    combines_groups=False,
    supplies_slash=True,
    wildcard_conflict=WildcardConflict.UNDEFINED,
    exempts_robots_txt=False,
    # The document leaves server errors that last undefined; the thirty days came with its successor.
    forgives_unreachable=False,
)

GOOGLE_2019 = replace(
    _AS_DOCUMENTED,
    name="google-2019",
    wildcard_conflict=WildcardConflict.UNDEFINED_UNLESS_TIED,
    exempts_robots_txt=False,
)

GOOGLE = replace(
    _AS_DOCUMENTED,
    name="google",
    max_line_bytes=2083 * 8 - 1,
    skips_partial_bom=True,
    nul_ends_line=True,
    misspellings=(*_FREQUENT_MISSPELLINGS, ("site-map", "sitemap")),
    extends_fields=True,
    colon_optional=True,
    allow_needs_colon=False,
    derives_general_names=False,
    lettered_names_only=True,
    index_is_folder=True,
    exempts_robots_txt=False,
    decodes_unreserved=False,
    specials_equal_escapes=False,
    normalises_urls=False,
    # Google slows down for 429 and takes it for "temporarily unable", like a 5xx.
    denied_statuses=frozenset({429}),
)

_BY_NAME = {each.name: each for each in (CLASSIC, GOOGLE_2010, GOOGLE_2019, RFC9309, GOOGLE)}


def dialect(name: str) -> Dialect:
    """The dialect of that name: classic, google-2010, google-2019, rfc9309 or google. Raises InvalidOption."""
    if name not in _BY_NAME:
        raise InvalidOption(f"dialect={name!r}: the dialects are {', '.join(_BY_NAME)}")
    return _BY_NAME[name]
