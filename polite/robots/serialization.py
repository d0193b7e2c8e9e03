"""The compact form of a file and its dialect's name, for stores and other processes."""

import zlib

from polite.errors import InvalidOption, PoliteError
from polite.robots.dialect import BY_NAME, Dialect

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


def pack(body: bytes, read_in: Dialect) -> bytes:
    """Return the compact form.

    It is a mark, a CRC-32 of the rest, the dialect's name with its length, and the body (zlib). A dialect of your own
    is stored as an empty name, and must be given to `unpack`.
    """
    name = read_in.name.encode() if BY_NAME.get(read_in.name) == read_in else b""
    rest = bytes([len(name)]) + name + zlib.compress(body)
    return _MARK + zlib.crc32(rest).to_bytes(_CHECKSUM, "big") + rest


def unpack(packed: bytes, own: Dialect | None = None) -> tuple[bytes, Dialect]:
    """Return the body and the dialect to read it in. `own`: the dialect to use instead of the stored one.

    Raises CorruptRobots and InvalidOption.
    """
    head, rest = packed[: len(_MARK) + _CHECKSUM], packed[len(_MARK) + _CHECKSUM :]
    if not head.startswith(_MARK):
        raise CorruptRobots(
            f"the compact form of a robots.txt starts with {_MARK!r}, not with {head[: len(_MARK)]!r}"
        )
    if not rest or zlib.crc32(rest).to_bytes(_CHECKSUM, "big") != head[len(_MARK) :]:
        raise CorruptRobots(f"a robots.txt in compact form was cut short or changed ({len(packed)} octets)")
    name = rest[1 : 1 + rest[0]].decode("ascii", "backslashreplace")
    if own is None and not name:
        raise InvalidOption(
            "dialect is missing: this robots.txt was read in a dialect of your own; pass that dialect"
        )
    read_in = own or BY_NAME.get(name)
    if read_in is None:
        raise CorruptRobots(f"the compact form of a robots.txt names no known dialect: {name!r}")
    # One octet more than the limit is inflated, whatever the data claim.
    most, inflater = read_in.max_bytes, zlib.decompressobj()
    try:
        body = inflater.decompress(rest[1 + rest[0] :], most + 1)
    except zlib.error as error:
        raise CorruptRobots(f"the compact form of a robots.txt does not inflate: {error}") from error
    if len(body) <= most and (not inflater.eof or inflater.unused_data):
        raise CorruptRobots("the compact form of a robots.txt is incomplete, or has octets after its end")
    return body, read_in
