"""The host of a URL: a name, an IPv4 or an IPv6 address, in its one canonical spelling (WHATWG URL, 3.5)."""

import re

from polite.url.errors import InvalidPart
from polite.url.idn import domain_to_ascii
from polite.url.ip import ends_in_number, parse_ipv4, parse_ipv6
from polite.url.percent import decode, encode_opaque_host

_FORBIDDEN_IN_HOST = re.compile(r"[\x00\t\n\r #/:<>?@\[\\\]^|]").search
_FORBIDDEN_IN_DOMAIN = re.compile(r"[\x00-\x20\x7f#%/:<>?@\[\\\]^|]").search


def parse_host(text: str, *, special: bool) -> str:
    """The canonical spelling of a host; an IPv6 address keeps its brackets. Raises InvalidPart.

    `special`: the scheme is one that the standard knows (http, https, ftp, ws, wss). Any other scheme's host
    is opaque: it is neither lower-cased nor read as a name.
    """
    if text.startswith("["):
        if not text.endswith("]"):
            raise InvalidPart("the bracket of an IPv6 address is not closed")
        return f"[{parse_ipv6(text[1:-1])}]"
    return _domain(text) if special else _opaque(text)


def _domain(text: str) -> str:
    name = domain_to_ascii(decode(text) if "%" in text else text)
    if not name:
        raise InvalidPart("nothing is left of the host once its invisible characters are removed")
    if found := _FORBIDDEN_IN_DOMAIN(name):
        raise _forbidden(found[0], text)
    return parse_ipv4(name) if ends_in_number(name) else name


def _opaque(text: str) -> str:
    if found := _FORBIDDEN_IN_HOST(text):
        raise _forbidden(found[0], text)
    return encode_opaque_host(text)


def _forbidden(character: str, text: str) -> InvalidPart:
    """It stands where it is in `text`, or somewhere unknown when it came out of decoding or mapping."""
    return InvalidPart(f"U+{ord(character):04X} is not allowed in a host", max(text.find(character), 0))
