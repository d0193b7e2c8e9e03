"""ShiftAnd: very many wildcard rules of one head, all walked at once through a path, with one bit for each octet of theirs."""

from collections.abc import Sequence

_BITS = 7  # a normal form is ASCII
_END = "\n"  # stands in no rule
# A star that is meant, whose escape the dialect makes plain; a `#` stands neither in rules nor in paths.
_STAR = "#"

# Tables of what each octet is: "0" or "1".
_IS_START = bytes(48 + (octet & 127 == ord(_END)) for octet in range(256))
_IS_BEFORE_STAR = bytes(48 + (octet >> _BITS) for octet in range(256))
_HAS_BIT = [bytes(48 + (octet >> bit & 1) for octet in range(256)) for bit in range(_BITS)]
_IS_STAR = bytes(128 * (octet == ord("*")) for octet in range(256))


class ShiftAnd:
    """Rules by their texts behind the head's first `*`, the strongest first.

    This is the Shift-And automaton (Baeza-Yates and Gonnet, 1992; with gaps Navarro and Raffinot, 2002) on Python's integers.
    Each octet of a rule is a state, and the rule's start is one; a bit is set when the path, as far as it was read, leads
    there. Reading an octet moves each bit to its neighbour where that neighbour is such an octet; a state in front of a `*`
    keeps its bit as well. So a path costs its length times the octets of the rules, by 30 in each step of the
    processor, whatever they hold: no order of the pieces makes it slower.
    """

    __slots__ = ("_lasts", "_ones", "_starts", "_staying", "_zeros", "steps")

    def __init__(self, tails: Sequence[str], *, plain_specials: bool) -> None:
        """`tails`: in normal form. `plain_specials`: whether `%2A` and `%24` are a star and a dollar themselves.

        `steps`: what each octet of a path costs, in units of 0.35 ns.
        """
        # What is not anchored may go on, as if it ended with a star.
        text = _END + (f"*{_END}".join(tails) + f"*{_END}").replace(f"$*{_END}", _END)[:-1]
        if plain_specials:
            text = text.replace("%2A", _STAR).replace("%24", "$")
        while "**" in text:
            text = text.replace("**", "*")
        states = _marked_before_stars(text.encode("ascii"))
        self.steps = 600 + len(states) // 3
        everywhere = (1 << len(states)) - 1
        self._starts = _where(states, _IS_START)
        self._lasts = (self._starts << 1) & everywhere | 1
        self._staying = _where(states, _IS_BEFORE_STAR) | self._starts
        octets = everywhere ^ self._starts
        self._ones = [_where(states, has_bit) & octets for has_bit in _HAS_BIT]
        self._zeros = [ones ^ octets for ones in self._ones]

    def strongest(self, path: str, start: int) -> int | None:
        """The place of the first rule that matches the path from `start` on."""
        state, staying = self._starts, self._staying
        seen: dict[str, int] = {}
        for character in path[start:]:
            such = seen.get(character)
            if such is None:
                such = seen[character] = self._such(_STAR if character == "*" else character)
            state = (state >> 1 & such) | (state & staying)
        matching = state & self._lasts
        return (self._starts >> matching.bit_length() - 1).bit_count() - 1 if matching else None

    def _such(self, character: str) -> int:
        """The states that are this octet."""
        octet = ord(character)
        if octet >> _BITS:
            return 0
        such = -1
        for bit in range(_BITS):
            such &= self._ones[bit] if octet >> bit & 1 else self._zeros[bit]
        return such


def _marked_before_stars(text: bytes) -> bytes:
    """The text without its stars; what stood before one has its highest bit set."""
    stars = text.translate(_IS_STAR)
    marked = int.from_bytes(text, "big") | int.from_bytes(stars, "big") << 8
    return marked.to_bytes(len(text), "big").translate(None, b"*")


def _where(states: bytes, digits: bytes) -> int:
    """A bit for each state, which its octet has in the table."""
    return int(states.translate(digits), 2)
