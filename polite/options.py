"""Options that are numbers, and what is no number is refused by name."""

import sys

from polite.errors import InvalidOption


def checked(name: str, value: float) -> float:
    """A finite number of at least zero. Raises InvalidOption."""
    if type(value) not in (int, float) or not 0 <= value <= sys.float_info.max:
        raise InvalidOption(f"{name}={value!r}: a finite number of 0 or more is needed")
    return float(value)
