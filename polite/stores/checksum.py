"""A checksum over the values of a row, as SQLite gives them back."""

from marshal import dumps
from zlib import crc32

# Version 2 of marshal writes each value with its type, and looks at no neighbour and at no reference. It has done so since
# Python 2.5, and takes a fifth of the time of `repr`.
_VERSION = 2


def checksum(values: object, start: int = 0) -> int:
    """Return the CRC-32 of one value or a tuple of them: None, int, float, str or bytes. It finds each flipped bit.

    An int and an equal float have different checksums. Use the values that the columns will hold (`as_number`, `as_real`).

    Args:
        start: The checksum of what goes before the values.
    """
    return crc32(dumps(values, _VERSION), start)  # type: ignore[arg-type]


def as_number(value: float) -> float:
    """Return a number as a NUMERIC column gives it back: an integer if it is one, and 64 bits can hold it."""
    if type(value) is float and value.is_integer() and -(2.0**63) < value < 2.0**63:
        return int(value)
    return value


def as_real(value: float | None) -> float | None:
    """Return a number as a REAL column gives it back: a float, and 0.0 for -0.0."""
    return None if value is None else float(value) + 0.0
