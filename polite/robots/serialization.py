"""The compact form of a file and its dialect's name: for stores, and to cross process borders."""

import zlib
from dataclasses import dataclass

from polite.errors import InvalidOption, PoliteError
from polite.robots.dialect import Dialect, dialect

# Marks the form and its version: "P", "R", and one octet that a later form counts up.
_MARK = b"PR\x01"
_CHECKSUM = 4


class CorruptRobots(PoliteError, ValueError):
    """Octets that are no compact form of a robots.txt: cut short, changed, or of another version."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A file's octets and how they are to be read."""

    body: bytes
    dialect: Dialect


def pack(body: bytes, spoken: Dialect) -> bytes:
    """Mark, CRC-32 of the rest, length of the dialect's name, name, and the body as zlib has it.

    A dialect of your own travels as an empty name, and is given again to `unpack`.
    """
    name = _name(spoken).encode()
    rest = bytes([len(name)]) + name + zlib.compress(body)
    return _MARK + zlib.crc32(rest).to_bytes(_CHECKSUM, "big") + rest


def unpack(packed: bytes, own: Dialect | None = None) -> Packed:
    """What `pack` packed; `own` is read in instead of the dialect that it names. Raises CorruptRobots and InvalidOption."""
    head, rest = packed[: len(_MARK) + _CHECKSUM], packed[len(_MARK) + _CHECKSUM :]
    if not head.startswith(_MARK):
        raise CorruptRobots(f"{head[: len(_MARK)]!r} is not how the compact form of a robots.txt starts")
    if not rest or zlib.crc32(rest).to_bytes(_CHECKSUM, "big") != head[len(_MARK) :]:
        raise CorruptRobots(
            f"the compact form of a robots.txt was cut short or changed ({len(packed)} octets)"
        )
    named, packed_body = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
    spoken = own or _named(named)
    return Packed(_inflated(packed_body, spoken.max_bytes), spoken)


def _name(spoken: Dialect) -> str:
    try:
        return spoken.name if dialect(spoken.name) == spoken else ""
    except InvalidOption:
        return ""


def _named(name: bytes) -> Dialect:
    if not name:
        raise InvalidOption("dialect=None: this robots.txt was read in a dialect of your own: give it again")
    try:
        return dialect(name.decode("ascii", "backslashreplace"))
    except InvalidOption as error:
        raise CorruptRobots(f"the compact form of a robots.txt names no known dialect: {error}") from error


def _inflated(packed_body: bytes, most: int) -> bytes:
    """The octets that count and one more, whatever they say of themselves."""
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(packed_body, most + 1)
    except zlib.error as error:
        raise CorruptRobots(f"the compact form of a robots.txt does not inflate: {error}") from error
    if len(body) <= most and (not inflater.eof or inflater.unused_data):
        raise CorruptRobots("the compact form of a robots.txt ends before its end, or goes on after it")
    return body
