"""Internationalised names to ASCII: UTS 46 as WHATWG URL (3.3) requires, on idna's tables."""

import unicodedata
from bisect import bisect_left, bisect_right
from functools import lru_cache

from idna import IDNAError, check_bidi, valid_contextj
from idna.uts46data import uts46_replacements, uts46_starts, uts46_statuses

from polite.url.errors import InvalidPart

# The parameters that RFC 3492, section 5, fixes for names.
_BASE, _TMIN, _TMAX, _SKEW, _DAMP, _BIAS, _FIRST = 36, 1, 26, 38, 700, 72, 0x80
_DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789"


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
    try:
        # A hyphen at the start separates nothing (RFC 3492, 3.1), though Python takes it for the end of no characters.
        if punycode.rfind("-") != 0:
            return punycode.encode("ascii").decode("punycode")
    except UnicodeError:
        pass
    raise InvalidPart("a label that starts with xn-- is not Punycode")


def _adapt(delta: int, length: int, *, first: bool) -> int:
    delta = delta // _DAMP if first else delta // 2
    delta += delta // length
    k = 0
    while delta > (_BASE - _TMIN) * _TMAX // 2:
        delta //= _BASE - _TMIN
        k += _BASE
    return k + (_BASE - _TMIN + 1) * delta // (delta + _SKEW)


def _variable_length(number: int, bias: int) -> str:
    digits = []
    k = _BASE
    while number >= (threshold := min(max(k - bias, _TMIN), _TMAX)):
        number, digit = divmod(number - threshold, _BASE - threshold)
        digits.append(_DIGITS[threshold + digit])
        k += _BASE
    return "".join(digits) + _DIGITS[number]


# In characters. A name in DNS has at most 253 octets (RFC 1035, 2.3.4). The standard sets no limit, but each character
# costs a table search.
MAX_IDN = 1024

_VALID, _MAPPED, _DEVIATION, _IGNORED = b"VMDI"
_JOINERS = ("\u200c", "\u200d")
_UNKNOWN_DIRECTION = ""
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


def domain_to_ascii(domain: str) -> str:
    """Return a domain as DNS expects it: in lower case, with Punycode if needed.

    Raises InvalidPart. CheckHyphens, UseSTD3ASCIIRules, Transitional_Processing and VerifyDnsLength are false,
    CheckBidi and CheckJoiners true. The caller decides which ASCII characters a host may have.

    Mapping and validity come from idna's tables; normal forms, marks and directions come from Python's, which may be
    some Unicode versions older. A character unknown to Python counts as one that composes with no other.
    """
    if domain.isascii():
        # An xn-- label is not decoded then, so an invalid one passes: browsers look it up as it is.
        return domain.lower()
    if len(domain) > MAX_IDN:
        raise InvalidPart(
            f"the internationalised name has {len(domain)} characters, the limit is MAX_IDN = {MAX_IDN}"
        )
    return _internationalised(domain)


@lru_cache(maxsize=1024)
def _internationalised(domain: str) -> str:
    """UTS 46, 4.2. Cached: a site with such a name links to itself a thousand times."""
    labels = [_decoded(label) for label in _mapped(domain).split(".")]
    for label in labels:
        _check(label)
    _check_directions(labels)
    return ".".join(label if label.isascii() else f"xn--{encode_label(label)}" for label in labels)


def _row(character: str) -> int:
    """Return the table row of a character: one for each of the first 256, then one per range."""
    code_point = ord(character)
    return code_point if code_point < 256 else bisect_right(uts46_starts, code_point) - 1


def _mapped(domain: str) -> str:
    """UTS 46, 4, steps 1 and 2.

    Disallowed characters stay until `_check`, since normalisation may still change them.
    """
    output = []
    for character in domain:
        row = _row(character)
        status = uts46_statuses[row]
        if status == _MAPPED:
            output.append(uts46_replacements[row] or "")
        elif status != _IGNORED:
            output.append(character)
    return unicodedata.normalize("NFC", "".join(output))


def _decoded(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    if not label.isascii():
        raise InvalidPart("a label that starts with xn-- has characters outside ASCII")
    decoded = decode_label(label[4:])
    # Also covers the empty label. Such a label would be a second form of an ASCII label.
    if decoded.isascii():
        raise InvalidPart("a label that starts with xn-- decodes to ASCII only")
    return decoded


def _check(label: str) -> None:
    """Check the validity criteria of UTS 46, 4.1, except for direction."""
    if label.isascii():
        return
    if unicodedata.normalize("NFC", label) != label:
        raise InvalidPart("a label that starts with xn-- is not normalised (NFC)")
    if label.startswith("xn--"):
        raise InvalidPart("a label that starts with xn-- decodes to another such label")
    if unicodedata.category(label[0]).startswith("M"):
        raise InvalidPart("a label starts with a combining mark")
    for position, character in enumerate(label):
        if uts46_statuses[_row(character)] not in (_VALID, _DEVIATION):
            raise InvalidPart(f"U+{ord(character):04X} is not allowed in a name")
        if character in _JOINERS and not _may_join(label, position):
            raise InvalidPart("a zero-width joiner is in a position where it joins nothing")


def _may_join(label: str, position: int) -> bool:
    try:
        return valid_contextj(label, position)
    except ValueError:
        # The character before it is newer than this Python's tables, so it is unknown whether they join.
        return False


def _check_directions(labels: list[str]) -> None:
    """Apply RFC 5893, 2, to right-to-left labels, and to labels of unknown direction with them.

    UTS 46 would apply it to all labels then (`1.א` fails because its first label starts with a digit). We check each
    label on its own, as ada and Node.js do: the same name in Punycode passes in every browser, and a host that resolves
    must have an origin. No name becomes ambiguous by this.
    """
    directions = [{unicodedata.bidirectional(character) for character in label} for label in labels]
    if not any(_RIGHT_TO_LEFT & found for found in directions):
        return
    try:
        for label, found in zip(labels, directions, strict=True):
            if _RIGHT_TO_LEFT & found or _UNKNOWN_DIRECTION in found:
                check_bidi(label)
    except IDNAError as error:
        raise InvalidPart("a label mixes right-to-left letters with others (RFC 5893, 2)") from error
