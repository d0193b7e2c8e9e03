"""A URL to its canonical parts: WHATWG URL's basic URL parser (4.4), for URLs with a host."""

import re
from typing import NamedTuple

from polite.errors import InvalidURL
from polite.url.errors import InvalidPart
from polite.url.host import parse_host
from polite.url.percent import (
    encode_fragment,
    encode_path,
    encode_query,
    encode_special_query,
    encode_userinfo,
)

_ONE_DOT = re.compile(r"\.|%2e", re.IGNORECASE).fullmatch
_TWO_DOTS = re.compile(r"(?:\.|%2e){2}", re.IGNORECASE).fullmatch
_MAY_HAVE_DOTS = re.compile(r"/(?:\.|%2e)", re.IGNORECASE).search


def normalise_path(path: str) -> str:
    """Resolve dot segments (`%2e` is a dot, too) and percent-encode.

    The path must start with `/`. Empty segments stay: `//a` and `/a` are different resources.
    """
    return encode_path(_without_dots(path) if _MAY_HAVE_DOTS(path) else path)


def _without_dots(path: str) -> str:
    kept: list[str] = []
    ends_in_slash = False
    for segment in path[1:].split("/"):
        ends_in_slash = True
        if _TWO_DOTS(segment):
            del kept[-1:]
        elif not _ONE_DOT(segment):
            kept.append(segment)
            ends_in_slash = False
    return "/" + "/".join([*kept, ""] if ends_in_slash else kept)


# In characters, before and after. Servers reject much shorter request lines; a megabyte of URL is an attack.
MAX_URL = 65_536

# The special schemes of the standard, except file, which names no host.
DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21, "ws": 80, "wss": 443}

_C0_AND_SPACE = "".join(map(chr, range(0x21)))
_UNSEEN = "\t\n\r"
_UNSEEN_RUN = re.compile(f"[{_UNSEEN}]+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*+):").match
_SLASHES = re.compile(r"[/\\]*+")
_SPECIAL_AUTHORITY = re.compile(r"[^/\\?#]*+")
_AUTHORITY = re.compile(r"[^/?#]*+")
# An address in brackets contains colons; the first colon outside of the brackets ends the host.
_HOST = re.compile(r"(?:[^:\[]++|\[[^\]]*+\]?+)*")
_DIGITS = re.compile(r"[0-9]*").fullmatch
# A URL whose scheme was forgotten: what seems to be its scheme is a host.
_HOST_AND_PORT = re.compile(
    r"(?:localhost|(?:[0-9a-z\-]{1,63}+\.){1,9}[0-9a-z\-]{1,63}+):[0-9]{1,5}+(?=[/?#]|\Z)",
    re.IGNORECASE | re.ASCII,
)


class ParsedURL(NamedTuple):
    """A URL's parts as the standard serialises them.

    Attributes:
        scheme: in lower case.
        username: percent-encoded.
        password: percent-encoded.
        host: canonical; an IPv6 address keeps its brackets.
        port: None if it is the scheme's default.
        path: starts with `/`, but may be empty for a scheme that the standard does not know.
        query: without its `?`; an empty query is not the same as None.
        fragment: without its `#`; an empty fragment is not the same as None.
    """

    scheme: str
    username: str
    password: str
    host: str
    port: int | None
    path: str
    query: str | None
    fragment: str | None

    @property
    def origin(self) -> str:
        """`https://example.com:8443`: without credentials and default port."""
        return f"{self.scheme}://{self.host}" + ("" if self.port is None else f":{self.port}")

    @property
    def path_and_query(self) -> str:
        return self.path if self.query is None else f"{self.path}?{self.query}"

    @property
    def href(self) -> str:
        """The whole URL with credentials and fragment: not for logs or request lines."""
        userinfo = f"{self.username}:{self.password}" if self.password else self.username
        return "".join(
            [
                f"{self.scheme}://",
                f"{userinfo}@" if userinfo else "",
                self.host,
                "" if self.port is None else f":{self.port}",
                self.path_and_query,
                "" if self.fragment is None else f"#{self.fragment}",
            ]
        )


def parse_url(url: str, base: ParsedURL | None = None) -> ParsedURL:
    """Return the parts of a URL, resolved against `base` if it is relative.

    Raises:
        InvalidURL: if the standard fails, if no host is named (`mailto:`, `file:`, `data:`), or if the URL has more than MAX_URL
            characters as given or as serialised.
        TypeError: if `url` is no str.
    """
    if not isinstance(url, str):
        raise TypeError(f"a URL must be a str, got {type(url).__qualname__}: pass str(url)")
    if len(url) > MAX_URL:
        raise InvalidURL(url, f"it has {len(url)} characters, the limit is MAX_URL = {MAX_URL}", MAX_URL)
    try:
        parsed = _parse(_as_read(url), base)
    except InvalidPart as invalid:
        hint = "" if base is not None else _hint(_as_read(url))
        raise InvalidURL(url, invalid.reason + hint, _as_given(url, invalid.position)) from None
    if (length := len(parsed.href)) > MAX_URL:
        raise InvalidURL(url, f"it has {length} characters once encoded, the limit is MAX_URL = {MAX_URL}")
    return parsed


def _hint(text: str) -> str:
    """Return what to write instead of a host and a port. Of any other text nothing is shown: it may be a password."""
    found = None if "@" in text else _HOST_AND_PORT.match(text)
    return "" if found is None else f"; did you mean http://{found[0]}?"


def _as_read(url: str) -> str:
    """Remove outer controls and spaces, tabs and newlines; replace lone surrogates."""
    return _SURROGATE.sub("\ufffd", _UNSEEN_RUN.sub("", url.strip(_C0_AND_SPACE)))


def _as_given(url: str, position: int) -> int:
    """Convert a position in the text as read to one in the text as given."""
    start = len(url) - len(url.lstrip(_C0_AND_SPACE))
    seen = (i for i in range(start, len(url)) if url[i] not in _UNSEEN)
    return next((given for i, given in enumerate(seen) if i == position), len(url))


def _parse(text: str, base: ParsedURL | None) -> ParsedURL:
    found = _SCHEME(text)
    if found is None:
        if base is None:
            raise InvalidPart("it does not start with a scheme, such as https:")
        return _relative(text, 0, base)
    scheme, start = found[1].lower(), found.end()
    if scheme in DEFAULT_PORTS:
        # Within the base's scheme, `http:path` is a relative reference.
        if base is not None and base.scheme == scheme and not text.startswith("//", start):
            return _relative(text, start, base)
        return _absolute(text, _after(_SLASHES, text, start), scheme)
    if scheme == "file":
        raise InvalidPart("a file: URL names no host")
    if not text.startswith("//", start):
        raise InvalidPart("no host follows its scheme (as in scheme://host)", start)
    return _absolute(text, start + 2, scheme)


def _after(run: re.Pattern[str], text: str, start: int) -> int:
    found = run.match(text, start)
    return start if found is None else found.end()


def _absolute(text: str, start: int, scheme: str) -> ParsedURL:
    """Parse authority, host and port. `start`: where the authority starts, after all slashes."""
    special = scheme in DEFAULT_PORTS
    end = _after(_SPECIAL_AUTHORITY if special else _AUTHORITY, text, start)
    userinfo, at, host_and_port = text[start:end].rpartition("@")
    host_start = start + len(userinfo) + len(at)
    username, _, password = userinfo.partition(":")
    host_length = _after(_HOST, host_and_port, 0)
    if not host_length:
        raise InvalidPart("it names no host", host_start)
    try:
        host = parse_host(host_and_port[:host_length], special=special)
    except InvalidPart as invalid:
        raise InvalidPart(invalid.reason, host_start + invalid.position) from invalid
    port = _port(host_and_port[host_length + 1 :], scheme, host_start + host_length + 1)
    path, query, fragment = _split(text[end:], special=special)
    path = normalise_path(path or "/") if path or special else ""
    return ParsedURL(
        scheme, encode_userinfo(username), encode_userinfo(password), host, port, path, query, fragment
    )


def _port(digits: str, scheme: str, position: int) -> int | None:
    if not digits:
        return None
    # The reason never quotes the text: it may be the password of a URL without its @.
    if not _DIGITS(digits):
        raise InvalidPart("what follows the host's colon is not a port number", position)
    significant = digits.lstrip("0")
    if len(significant) > 5 or (port := int(significant or "0")) > 65_535:
        raise InvalidPart("the port is out of range (0 to 65535)", position)
    return None if port == DEFAULT_PORTS.get(scheme) else port


def _split(tail: str, *, special: bool) -> tuple[str, str | None, str | None]:
    """Split the text after the authority into path, query and fragment, the latter two encoded."""
    rest, hash_sign, fragment = tail.partition("#")
    path, question_mark, query = rest.partition("?")
    encode = encode_special_query if special else encode_query
    return (
        path.replace("\\", "/") if special else path,
        encode(query) if question_mark else None,
        encode_fragment(fragment) if hash_sign else None,
    )


def _relative(text: str, start: int, base: ParsedURL) -> ParsedURL:
    """Parse the text from `start` on relative to `base`."""
    special = base.scheme in DEFAULT_PORTS
    slashes = ("/", "\\") if special else ("/",)
    if text.startswith(slashes, start) and text.startswith(slashes, start + 1):
        return _absolute(text, _after(_SLASHES, text, start) if special else start + 2, base.scheme)
    path, query, fragment = _split(text[start:], special=special)
    if path.startswith("/"):
        path = normalise_path(path)
    elif path:
        # The base's last segment gives way to the reference.
        path = normalise_path(f"{base.path.rpartition('/')[0]}/{path}")
    else:
        path, query = base.path, base.query if query is None else query
    return ParsedURL(*base[:5], path, query, fragment)
