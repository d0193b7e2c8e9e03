"""The host of a URL: a name, an IPv4 or an IPv6 address, canonical (WHATWG URL, 3.5)."""

import re

from polite.url.errors import InvalidPart
from polite.url.idn import domain_to_ascii
from polite.url.ip import ends_in_number, parse_ipv4, parse_ipv6
from polite.url.percent import decode, encode_opaque_host

_FORBIDDEN_IN_HOST = re.compile(r"[\x00\t\n\r #/:<>?@\[\\\]^|]").search
_FORBIDDEN_IN_DOMAIN = re.compile(r"[\x00-\x20\x7f#%/:<>?@\[\\\]^|]").search


def parse_host(text: str, *, special: bool) -> str:
    """Return the canonical form of a host.

    An IPv6 address keeps its brackets. Raises InvalidPart.

    Args:
        text: the host as written.
        special: whether the scheme is special in the standard (http, https, ftp, ws, wss). The host of any other scheme is
            opaque: it is neither lower-cased nor read as a name.
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
    """Report the character at its position in `text`, or at 0 if decoding produced it."""
    return InvalidPart(f"U+{ord(character):04X} is not allowed in a host", max(text.find(character), 0))
