"""The host of a URL: a name, an IPv4 or an IPv6 address, canonical (WHATWG URL, 3.5)."""

import re
from ipaddress import IPv6Address

from polite.url.errors import InvalidPart
from polite.url.idn import domain_to_ascii
from polite.url.percent import decode, encode_opaque_host

# The last label decides: digits, or 0x with any hexadecimal digits or none; one trailing dot may follow.
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]++|0x[0-9a-f]*+)\.?\Z").search
_OCTAL = re.compile(r"0[0-7]+").fullmatch
_DECIMAL = re.compile(r"[0-9]+").fullmatch
_HEXADECIMAL = re.compile(r"0x[0-9a-f]*").fullmatch
_DOTTED_QUAD = re.compile(
    r"(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})\.(0|[1-9][0-9]{0,2})"
).fullmatch

# 2**32 has eleven octal digits; numbers of more digits are out of range, and int() never reads them.
_MAX_DIGITS = 12
# Eight pieces of four digits, or six of them and a dotted quad.
_MAX_IPV6 = 45


def ends_in_number(host: str) -> bool:
    """Return whether a lower-case ASCII host must be an IPv4 address, or is invalid."""
    return _ENDS_IN_NUMBER(host) is not None


def parse_ipv4(host: str) -> str:
    """Return a host that ends in a number as a dotted quad: `0x7f.1` is `127.0.0.1`.

    The host must be in lower case. Raises InvalidPart.
    """
    # Hot path: nearly all addresses are written in this form.
    if (quad := _DOTTED_QUAD(host)) and all(int(part) < 256 for part in quad.groups()):
        return host
    parts = host.removesuffix(".").split(".", 4)
    if len(parts) > 4:
        raise InvalidPart("an IPv4 address has at most four parts")
    *heads, last = (_ipv4_number(part) for part in parts)
    if any(number > 255 for number in heads) or last >= 256 ** (4 - len(heads)):
        raise InvalidPart("a part of the IPv4 address is too large")
    address = last + sum(number << 8 * (3 - i) for i, number in enumerate(heads))
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def _ipv4_number(part: str) -> int:
    if _HEXADECIMAL(part):
        digits, radix = part[2:], 16
    elif _OCTAL(part):
        digits, radix = part[1:], 8
    elif _DECIMAL(part) and (part == "0" or part[0] != "0"):
        digits, radix = part, 10
    else:
        raise InvalidPart("a host that ends in a number must be an IPv4 address, and this one is not")
    digits = digits.lstrip("0")
    if len(digits) > _MAX_DIGITS:
        raise InvalidPart("a part of the IPv4 address is too large")
    return int(digits or "0", radix)


def parse_ipv6(text: str) -> str:
    """Return the text between the brackets, compressed and hexadecimal. Raises InvalidPart."""
    if len(text) > _MAX_IPV6:
        raise InvalidPart(f"the IPv6 address has {len(text)} characters, the limit is {_MAX_IPV6}")
    try:
        # A zone (`fe80::1%eth0`) is a matter of one machine, and of no URL.
        address = None if "%" in text else int(IPv6Address(text))
    except ValueError:
        address = None
    if address is None:
        raise InvalidPart(
            "an IPv6 address has eight pieces of one to four hexadecimal digits, or fewer with one '::'"
        )
    return _compressed([address >> shift & 0xFFFF for shift in range(112, -1, -16)])


def _compressed(pieces: list[int]) -> str:
    """Replace the first longest run of two or more zeros by `::`."""
    start, length = 0, 1
    for i in range(8):
        run = next((n for n, piece in enumerate(pieces[i:]) if piece), 8 - i)
        if run > length:
            start, length = i, run
    if length == 1:
        return ":".join(f"{piece:x}" for piece in pieces)
    left, right = pieces[:start], pieces[start + length :]
    return ":".join(f"{piece:x}" for piece in left) + "::" + ":".join(f"{piece:x}" for piece in right)


def is_address(host: str) -> bool:
    """Return whether a canonical host is an address, not a name."""
    quad = _DOTTED_QUAD(host)
    return host.startswith("[") if quad is None else max(map(int, quad.groups())) < 256


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
