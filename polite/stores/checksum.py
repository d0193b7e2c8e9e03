"""A checksum over the values of a row, as SQLite gives them back."""

from zlib import crc32


def checksum(values: tuple[object, ...]) -> int:
    """CRC-32: it finds each flipped bit. A whole number is the same as an int and as a float, as columns may change it."""
    if float in map(type, values):
        values = tuple(int(each) if type(each) is float and each.is_integer() else each for each in values)
    return crc32(repr(values).encode(errors="backslashreplace"))
