"""compact: a sequence of small integers in little memory."""

from array import array
from collections.abc import Sequence


def compact(numbers: list[int]) -> Sequence[int]:
    """Return the same integers, each of which needs at most 32 bits, in one to four octets each.

    Most files have few rules, and their numbers fit into bytes, which are read as fast as a list.
    """
    # Hot path: to try costs less than to look for the least and the largest.
    try:
        return bytes(numbers)
    except ValueError:
        pass
    try:
        return array("h", numbers)
    except OverflowError:
        return array("i", numbers)
