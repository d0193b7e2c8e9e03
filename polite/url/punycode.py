"""Punycode of one label, in both directions, by sorting instead of searching (RFC 3492)."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain

from polite.url.errors import InvalidPart

# The parameters that RFC 3492, section 5, fixes for names.
_BASE, _TMIN, _TMAX, _SKEW, _DAMP, _BIAS, _FIRST = 36, 1, 26, 38, 700, 72, 0x80
_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}


def encode_label(label: str) -> str:
    """Return the Punycode of a label with at least one non-ASCII character, without the `xn--`.

    The RFC scans the label once for each distinct character. Sorting the characters once gives the same deltas: each is
    computed from its position among the characters inserted before.
    """
    basic = "".join(c for c in label if c < "\x80")
    output = [basic, "-"] if basic else []
    placed = [i for i, c in enumerate(label) if c < "\x80"]
    code_point, index, bias = _FIRST, 0, _BIAS
    for character, position in sorted((c, i) for i, c in enumerate(label) if c >= "\x80"):
        place = bisect_left(placed, position)
        delta = (ord(character) - code_point) * (len(placed) + 1) + place - index
        output.append(_variable_length(delta, bias))
        bias = _adapt(delta, len(placed) + 1, first=len(placed) == len(basic))
        placed.insert(place, position)
        code_point, index = ord(character), place + 1
    return "".join(output)


def decode_label(punycode: str) -> str:
    """Return the label of a Punycode text (lower case, without the `xn--`). Raises InvalidPart.

    The caller limits its length: an integer may be as long as the label.
    """
    cut = max(punycode.rfind("-"), 0)
    label = list(punycode[:cut])
    digits = iter(punycode[cut + 1 if cut else 0 :])
    code_point, index, bias = _FIRST, 0, _BIAS
    for digit in digits:
        before, index = index, index + _read_integer(digit, digits, bias)
        bias = _adapt(index - before, len(label) + 1, first=before == 0)
        code_point += index // (len(label) + 1)
        index %= len(label) + 1
        if code_point > 0x10FFFF:
            raise InvalidPart("a label that starts with xn-- is not Punycode")
        label.insert(index, chr(code_point))
        index += 1
    return "".join(label)


def _adapt(delta: int, length: int, *, first: bool) -> int:
    delta = delta // _DAMP if first else delta // 2
    delta += delta // length
    k = 0
    while delta > (_BASE - _TMIN) * _TMAX // 2:
        delta //= _BASE - _TMIN
        k += _BASE
    return k + (_BASE - _TMIN + 1) * delta // (delta + _SKEW)


def _threshold(k: int, bias: int) -> int:
    return min(max(k - bias, _TMIN), _TMAX)


def _variable_length(number: int, bias: int) -> str:
    digits = []
    k = _BASE
    while number >= (threshold := _threshold(k, bias)):
        number, digit = divmod(number - threshold, _BASE - threshold)
        digits.append(_DIGITS[threshold + digit])
        k += _BASE
    return "".join(digits) + _DIGITS[number]


def _read_integer(first: str, rest: Iterator[str], bias: int) -> int:
    """Read one variable-length integer; a digit below the threshold ends it (RFC 3492, 3.3)."""
    number, weight, k = 0, 1, _BASE
    for character in chain(first, rest):
        digit = _VALUES.get(character)
        if digit is None:
            break
        number += digit * weight
        threshold = _threshold(k, bias)
        if digit < threshold:
            return number
        weight *= _BASE - threshold
        k += _BASE
    raise InvalidPart("a label that starts with xn-- is not Punycode")
