"""A checksum over the values of a row, as SQLite gives them back."""

from collections.abc import Iterable
from zlib import crc32


def checksum(values: Iterable[object]) -> int:
    """CRC-32: it finds each flipped bit. A whole number is the same as an int and as a float, as columns may change it."""
    return crc32(repr([_whole(value) for value in values]).encode(errors="backslashreplace"))


def _whole(value: object) -> object:
    return int(value) if type(value) is float and value.is_integer() else value
