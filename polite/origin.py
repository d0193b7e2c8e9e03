"""Origin and Target: which server a URL belongs to, and what is requested from it."""

import re
from dataclasses import dataclass

from polite.url.parse import DEFAULT_PORTS, MAX_URL, ParsedURL, parse_url

_put = object.__setattr__


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Origin:
    """A scheme, a host and a port: what a robots.txt and a delay apply to (L1, L2).

    `Origin.of` makes it from any URL. If made directly, its parts must be canonical.

        >>> Origin.of("https://Example.com:443/a?b#c")
        Origin.of('https://example.com')
        >>> Origin.of("https://example.com/a").robots_url
        'https://example.com/robots.txt'

    Attributes:
        scheme: in lower case.
        host: in lower-case ASCII; an IPv6 address keeps its brackets.
        port: the effective port, 80 for a plain `http://host`; None only for a scheme that the URL standard does not know.
        text: the origin as text, without a default port.
    """

    scheme: str
    host: str
    port: int | None
    text: str
    _hash: int

    def __init__(self, scheme: str, host: str, port: int | None) -> None:
        default = DEFAULT_PORTS.get(scheme)
        text = f"{scheme}://{host}" if port is None or port == default else f"{scheme}://{host}:{port}"
        _put(self, "scheme", scheme)
        _put(self, "host", host)
        _put(self, "port", default if port is None else port)
        _put(self, "text", text)
        _put(self, "_hash", hash(text))

    @classmethod
    def of(cls, url: str) -> "Origin":
        """Return the origin of a URL with a host. Raises InvalidURL; TypeError if it is no str."""
        return Target.of(url).origin

    @property
    def robots_url(self) -> str:
        """The URL of its robots.txt (L1)."""
        return f"{self.text}/robots.txt"

    @property
    def robots(self) -> "Target":
        """Its robots.txt."""
        return Target(self, "/robots.txt")

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Origin.of({self.text!r})"

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Origin) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.text < other.text if isinstance(other, Origin) else NotImplemented

    def __reduce__(self) -> tuple[type["Origin"], tuple[str, str, int | None]]:
        # The hash of a str differs between processes, so it must not be pickled.
        return Origin, (self.scheme, self.host, self.port)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Target:
    """What a request asks for: an origin, and a path with its query.

    `Target.of` makes it from any URL. If made directly, `path` must be canonical. It has neither credentials nor a
    fragment.

        >>> target = Target.of("https://example.com/a/../b?c=d#e")
        >>> target.path, target.url
        ('/b?c=d', 'https://example.com/b?c=d')
        >>> target.join("next").url
        'https://example.com/next'

    Attributes:
        origin: the server.
        path: the path and query, as sent and as rules match it.
    """

    origin: Origin
    path: str

    def __init__(self, origin: Origin, path: str) -> None:
        _put(self, "origin", origin)
        _put(self, "path", path)

    @classmethod
    def of(cls, url: str) -> "Target":
        """Return the target of a URL with a host. Raises InvalidURL; TypeError if it is no str."""
        return _plain(url) or _target(parse_url(url), url)

    @property
    def url(self) -> str:
        """The canonical URL to fetch: without credentials, fragment and default port."""
        return f"{self.origin.text}{self.path}"

    def join(self, reference: str) -> "Target":
        """Resolve a reference (a link, or a Location) that was found at this URL. Raises what `of` raises."""
        return _plain(reference) or _target(parse_url(reference, self._base()), reference)

    def _base(self) -> ParsedURL:
        origin = self.origin
        path, question_mark, text = self.path.partition("?")
        query = text if question_mark else None
        # This may be a default port; the Origin made of the result omits it again.
        return ParsedURL(origin.scheme, "", "", origin.host, origin.port, path, query, None)

    def __reduce__(self) -> tuple[type["Target"], tuple[Origin, str]]:
        return Target, (self.origin, self.path)

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"Target.of({self.url!r})"


# Hot path: a crawl uses few origins again and again. Maps `scheme://host`, as spelled, to its origin. Emptied when full, which
# costs each origin one parse; an LRU would cost every access more than that.
_MAX_SPELLINGS = 16_384
_spellings: dict[str, Origin] = {}

# Only spellings that are independent of the rest of the URL are cached: without credentials, a second slash, or characters that
# the parser skips.
_SPELLING = re.compile(r"https?://[^/\\?#@\x00-\x20]{1,253}").fullmatch

# Encoding turns one character into twelve at most. Below this length no URL can exceed MAX_URL, so the fast path need not
# measure to accept what the parser accepts.
_MAX_PLAIN = MAX_URL // 16


# Most URLs are canonical already. A host's name has non-empty labels. The last one starts with a letter, so it cannot be an IPv4
# address. Possessive repeats (*+, ++) never backtrack: each character is read once.
_PLAIN_ORIGIN = re.compile(r"(https?)://((?:[a-z0-9_\-]++\.)*[a-z][a-z0-9_\-]*+)").fullmatch
# Characters that the path and query states keep, up to a fragment or the end. Dots and %2e are checked separately.
_PLAIN_PATH = re.compile(r"(/[!$-;=@-Z\[\]_a-z|~]*+(?:\?[!$-&(-;=?-~]*+)?)(?:#|\Z)").match
_ENCODED_DOT = re.compile(r"%2e", re.IGNORECASE).search


def _plain(url: object) -> Target | None:
    """Return the target without parsing, if the origin is known or canonical, and the path canonical; else None."""
    if not isinstance(url, str) or len(url) > _MAX_PLAIN:
        return None
    end = url.find("/", 8)
    spelling = url if end < 0 else url[:end]
    origin = _spellings.get(spelling)
    if origin is None:
        named = _PLAIN_ORIGIN(spelling)
        if named is None:
            return None
        origin = _remember(spelling, Origin(named[1], named[2], None))
    if end < 0:
        return Target(origin, "/")
    found = _PLAIN_PATH(url, end)
    if found is None:
        return None
    path: str = found[1]
    if "/." in path or ("%2" in path and _ENCODED_DOT(path)):
        return None
    return Target(origin, path)


def _target(parsed: ParsedURL, url: str) -> Target:
    """Return the target of a parsed URL, and cache its origin."""
    origin = Origin(parsed.scheme, parsed.host, parsed.port)
    end = url.find("/", 8)
    spelling = url if end < 0 else url[:end]
    if _SPELLING(spelling):
        origin = _remember(spelling, origin)
    return Target(origin, parsed.path_and_query if parsed.path else f"/{parsed.path_and_query}")


def _remember(spelling: str, origin: Origin) -> Origin:
    """Cache the origin. All spellings share one object, so most comparisons end at `is`."""
    if len(_spellings) >= _MAX_SPELLINGS - 1:
        _spellings.clear()
    shared = _spellings.setdefault(origin.text, origin)
    _spellings[spelling] = shared
    return shared
