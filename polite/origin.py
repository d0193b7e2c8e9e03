"""Who to ask and what to match: a URL's origin (scheme, host, port) and its target (origin, path)."""

import re
from dataclasses import dataclass

from polite.url.fast_path import canonical_origin, canonical_path
from polite.url.parse import DEFAULT_PORTS, MAX_URL, ParsedURL, parse_url

_put = object.__setattr__


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Origin:
    """A scheme, a host and a port: what a robots.txt speaks for and what turns are counted by (L1, L2).

    Made by `Origin.of` from any spelling; made directly, its parts must be canonical already. `host` is
    lower-case ASCII, an IPv6 address keeps its brackets. `port` is the effective one, 80 for a bare
    `http://host`, and None only for a scheme that the URL standard does not know. `str()` names no default
    port.
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
        """The origin of any URL that names a host. Raises InvalidURL; TypeError for anything but a str."""
        return Target.of(url).origin

    @property
    def robots_url(self) -> str:
        """The one place its rules can be at: /robots.txt at its top (L1)."""
        return f"{self.text}/robots.txt"

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
        # The hash of a str differs from process to process: it must not travel.
        return Origin, (self.scheme, self.host, self.port)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Target:
    """What a request asks for: an origin, and the path with its query, as it is sent and as rules match it.

    Made by `Target.of` from any spelling; made directly, `path` must be canonical already. Neither
    credentials nor a fragment are part of it.
    """

    origin: Origin
    path: str

    def __init__(self, origin: Origin, path: str) -> None:
        _put(self, "origin", origin)
        _put(self, "path", path)

    @classmethod
    def of(cls, url: str) -> "Target":
        """The target of any URL that names a host. Raises InvalidURL; TypeError for anything but a str."""
        return _plain(url) or _target(parse_url(url), url)

    @property
    def url(self) -> str:
        """The URL to fetch, canonical: no credentials, no fragment, no default port."""
        return f"{self.origin}{self.path}"

    def join(self, reference: str) -> "Target":
        """What a link or a Location found at this URL points to. Raises what `of` raises."""
        return _plain(reference) or _target(parse_url(reference, self._base()), reference)

    def _base(self) -> ParsedURL:
        origin = self.origin
        path, question_mark, text = self.path.partition("?")
        query = text if question_mark else None
        # A default port may stand here: the Origin made of the result leaves it out again.
        return ParsedURL(origin.scheme, "", "", origin.host, origin.port, path, query, None)

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"Target.of({self.url!r})"


# A crawl asks the same few origins again and again: `scheme://host`, as it was spelt, to its origin. Emptied
# when full, which costs an origin one parse; choosing what to drop would cost every newcomer more than that.
_MAX_SPELLINGS = 4096
_spellings: dict[str, Origin] = {}

# Only what nothing around it can change is remembered: no credentials, no second slash, nothing that the
# parser skips.
_SPELLING = re.compile(r"https?://[^/\\?#@\x00-\x20]{1,253}").fullmatch

# Encoding makes twelve characters of one at most: below this, no URL can grow beyond MAX_URL, so that the
# short way, which does not measure, accepts what the long way does.
_MAX_PLAIN = MAX_URL // 16


def _plain(url: object) -> Target | None:
    """The short way, where the origin's spelling is known or canonical, and the path is canonical."""
    if not isinstance(url, str) or len(url) > _MAX_PLAIN:
        return None
    spelling, end = _split(url)
    origin = _spellings.get(spelling)
    if origin is None:
        found = canonical_origin(spelling)
        if found is None:
            return None
        origin = _remember(spelling, Origin(*found, None))
    path = "/" if end < 0 else canonical_path(url, end)
    return None if path is None else Target(origin, path)


def _target(parsed: ParsedURL, url: str) -> Target:
    """The long way: `url` has been parsed."""
    origin = Origin(parsed.scheme, parsed.host, parsed.port)
    spelling, _ = _split(url)
    if _SPELLING(spelling):
        origin = _remember(spelling, origin)
    return Target(origin, parsed.path_and_query if parsed.path else f"/{parsed.path_and_query}")


def _split(url: str) -> tuple[str, int]:
    """What stands before the first slash after `http://` or `https://`, and where it is (-1: nowhere)."""
    end = url.find("/", 8)
    return (url, end) if end < 0 else (url[:end], end)


def _remember(spelling: str, origin: Origin) -> Origin:
    """The one Origin that all its spellings share, so that most comparisons end at `is`."""
    if len(_spellings) >= _MAX_SPELLINGS - 1:
        _spellings.clear()
    shared = _spellings.setdefault(str(origin), origin)
    _spellings[spelling] = shared
    return shared
