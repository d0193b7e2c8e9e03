"""Internationalised names to ASCII: UTS 46 as WHATWG URL (3.3) asks for it, on idna's tables."""

import unicodedata
from bisect import bisect_right
from functools import lru_cache

from idna import IDNAError, check_bidi, valid_contextj
from idna.uts46data import uts46_replacements, uts46_starts, uts46_statuses

from polite.url.errors import InvalidPart
from polite.url.punycode import decode_label, encode_label

# In characters. A name in DNS has at most 253 octets (RFC 1035, 2.3.4); the standard sets no limit, but each
# character here costs a search in a table.
MAX_IDN = 1024

_VALID, _MAPPED, _DEVIATION, _IGNORED = b"VMDI"
_JOINERS = ("\u200c", "\u200d")
_UNKNOWN_DIRECTION = ""
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


def domain_to_ascii(domain: str) -> str:
    """`domain` as DNS is asked for it: lower case, Punycode where needed. Raises InvalidPart.

    CheckHyphens, UseSTD3ASCIIRules, Transitional_Processing and VerifyDnsLength are false, CheckBidi and
    CheckJoiners true. Which ASCII characters a host may hold is the caller's question.

    Mapping and validity come from idna's tables; normal forms, marks and directions from this Python's, which
    may be some Unicode versions older. A character unknown to those counts as one that composes with nothing.
    """
    if domain.isascii():
        # An xn-- label is not even decoded then, so a wrong one passes: browsers ask DNS for it as it stands.
        return domain.lower()
    if len(domain) > MAX_IDN:
        raise InvalidPart(f"the internationalised name has more than MAX_IDN = {MAX_IDN} characters")
    return _internationalised(domain)


@lru_cache(maxsize=1024)
def _internationalised(domain: str) -> str:
    """UTS 46, 4.2. Remembered, for a site with such a name links to itself a thousand times."""
    labels = [_decoded(label) for label in _mapped(domain).split(".")]
    for label in labels:
        _check(label)
    _check_directions(labels)
    return ".".join(label if label.isascii() else f"xn--{encode_label(label)}" for label in labels)


def _row(character: str) -> int:
    """The table's row for this character: one for each of the first 256, then one for each range."""
    code_point = ord(character)
    return code_point if code_point < 256 else bisect_right(uts46_starts, code_point) - 1


def _mapped(domain: str) -> str:
    """UTS 46, 4, steps 1 and 2. What is disallowed stays until `_check`: normalisation may yet change it."""
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
        raise InvalidPart("a label that starts with xn-- holds characters beyond ASCII")
    decoded = decode_label(label[4:])
    # Covers the empty one. Such a label would be a second spelling of a plain one.
    if decoded.isascii():
        raise InvalidPart("a label that starts with xn-- stands for plain ASCII")
    return decoded


def _check(label: str) -> None:
    """UTS 46, 4.1, the validity criteria, but for direction."""
    if label.isascii():
        return
    if unicodedata.normalize("NFC", label) != label:
        raise InvalidPart("a label that starts with xn-- is not normalised (NFC)")
    if label.startswith("xn--"):
        raise InvalidPart("a label that starts with xn-- stands for another that does")
    if unicodedata.category(label[0]).startswith("M"):
        raise InvalidPart("a label starts with a combining mark")
    for position, character in enumerate(label):
        if uts46_statuses[_row(character)] not in (_VALID, _DEVIATION):
            raise InvalidPart(f"U+{ord(character):04X} is not allowed in a name")
        if character in _JOINERS and not _may_join(label, position):
            raise InvalidPart("a zero-width joiner stands where it joins nothing")


def _may_join(label: str, position: int) -> bool:
    try:
        return valid_contextj(label, position)
    except ValueError:
        # The character before it is newer than this Python's tables: nobody can tell whether they join.
        return False


def _check_directions(labels: list[str]) -> None:
    """RFC 5893, 2, for the labels that run from right to left, and for those beside them that nobody can judge.

    UTS 46 would then bind all labels (`1.א` is refused, for its first one starts with a digit). We ask each label for
    itself, as ada and with it Node.js do: the same name in Punycode passes in every browser, and a host that resolves
    must have an origin. Nothing becomes ambiguous by it.
    """
    directions = [{unicodedata.bidirectional(character) for character in label} for label in labels]
    if not any(_RIGHT_TO_LEFT & found for found in directions):
        return
    try:
        for label, found in zip(labels, directions, strict=True):
            if _RIGHT_TO_LEFT & found or _UNKNOWN_DIRECTION in found:
                check_bidi(label)
    except IDNAError as error:
        raise InvalidPart(
            "a label mixes letters that run from right to left with others (RFC 5893, 2)"
        ) from error
