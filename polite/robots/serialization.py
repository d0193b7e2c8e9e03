"""The compact form of a file and its dialect's name, for stores and other processes."""

import zlib
from dataclasses import dataclass

from polite.errors import InvalidOption, PoliteError
from polite.robots.dialect import Dialect, dialect

# The form and its version: "P", "R", and one octet for the version.
_MARK = b"PR\x01"
_CHECKSUM = 4


class CorruptRobots(PoliteError, ValueError):
    """Octets that are no compact form of a robots.txt, or of a snapshot: cut short, changed, or another version.

    >>> from polite import Robots
    >>> Robots.from_bytes(b"User-agent: *")
    Traceback (most recent call last):
    ...
    polite.robots.serialization.CorruptRobots: the compact form of a robots.txt starts with b'PR\\x01', not with b'Use'
    """


@dataclass(frozen=True, slots=True)
class Packed:
    """A file's octets and the dialect to read them in."""

    body: bytes
    dialect: Dialect


def pack(body: bytes, read_in: Dialect) -> bytes:
    """Return the compact form.

    It is a mark, a CRC-32 of the rest, the dialect's name with its length, and the body (zlib). A dialect of your own
    is stored as an empty name, and must be given to `unpack`.
    """
    name = _name(read_in).encode()
    rest = bytes([len(name)]) + name + zlib.compress(body)
    return _MARK + zlib.crc32(rest).to_bytes(_CHECKSUM, "big") + rest


def unpack(packed: bytes, own: Dialect | None = None) -> Packed:
    """Undo `pack`. `own`: the dialect to use instead of the stored one.

    Raises CorruptRobots and InvalidOption.
    """
    head, rest = packed[: len(_MARK) + _CHECKSUM], packed[len(_MARK) + _CHECKSUM :]
    if not head.startswith(_MARK):
        raise CorruptRobots(
            f"the compact form of a robots.txt starts with {_MARK!r}, not with {head[: len(_MARK)]!r}"
        )
    if not rest or zlib.crc32(rest).to_bytes(_CHECKSUM, "big") != head[len(_MARK) :]:
        raise CorruptRobots(
            f"the compact form of a robots.txt was cut short or changed ({len(packed)} octets)"
        )
    named, packed_body = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
    read_in = own or _named(named)
    return Packed(_inflated(packed_body, read_in.max_bytes), read_in)


def _name(read_in: Dialect) -> str:
    try:
        return read_in.name if dialect(read_in.name) == read_in else ""
    except InvalidOption:
        return ""


def _named(name: bytes) -> Dialect:
    if not name:
        raise InvalidOption(
            "dialect is missing: this robots.txt was read in a dialect of your own; pass that dialect"
        )
    try:
        return dialect(name.decode("ascii", "backslashreplace"))
    except InvalidOption as error:
        raise CorruptRobots(f"the compact form of a robots.txt names no known dialect: {error}") from error


def _inflated(packed_body: bytes, most: int) -> bytes:
    """Inflate up to one octet more than the limit, whatever the data claim."""
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(packed_body, most + 1)
    except zlib.error as error:
        raise CorruptRobots(f"the compact form of a robots.txt does not inflate: {error}") from error
    if len(body) <= most and (not inflater.eof or inflater.unused_data):
        raise CorruptRobots("the compact form of a robots.txt is incomplete, or has octets after its end")
    return body
