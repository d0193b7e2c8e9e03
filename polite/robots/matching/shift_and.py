"""ShiftAnd: runs many wildcard rules of one head over a path at once, one bit per octet."""

from collections.abc import Sequence

from polite.robots.dialect import let_threads_switch

_BITS = 7  # a normal form is ASCII
_END = "\n"  # is in no rule
# Stands for an escaped star, which means itself; `#` is neither in rules nor in paths.
_STAR = "#"

# Octets of a path between two moments at which threads may switch: at most half a millisecond.
_AT_A_TIME = 32

# Tables by octet; the values are the digits "0" and "1".
_IS_START = bytes(48 + (octet & 127 == ord(_END)) for octet in range(256))
_IS_BEFORE_STAR = bytes(48 + (octet >> _BITS) for octet in range(256))
_HAS_BIT = [bytes(48 + (octet >> bit & 1) for octet in range(256)) for bit in range(_BITS)]
_IS_STAR = bytes(128 * (octet == ord("*")) for octet in range(256))


class ShiftAnd:
    """The Shift-And automaton of rules, given by their texts behind the head's first `*`.

    Baeza-Yates and Gonnet, 1992; with gaps Navarro and Raffinot, 2002; on Python's integers. Each octet of a rule is a
    state, and so is the start of each rule. A state's bit is set while the part of the path that was read leads to it.
    Reading an octet moves each bit to the next state if that state is such an octet; a state in front of a `*` also
    keeps its bit. The cost is the length of the path times the octets of the rules, divided by 30 for each step of the
    processor, whatever they contain.

    Attributes:
        steps: the cost of each octet of a path, in units of 0.35 ns.
    """

    __slots__ = ("_lasts", "_ones", "_starts", "_staying", "_zeros", "steps")

    def __init__(self, tails: Sequence[str], *, plain_specials: bool) -> None:
        """Build the automaton.

        Args:
            tails: the rules in normal form behind the head's first `*`, the strongest first.
            plain_specials: whether `%2A` and `%24` mean `*` and `$` themselves.
        """
        # A rule that is not anchored is as if it ended with a star.
        text = _END + (f"*{_END}".join(tails) + f"*{_END}").replace(f"$*{_END}", _END)[:-1]
        if plain_specials:
            text = text.replace("%2A", _STAR).replace("%24", "$")
        while "**" in text:
            text = text.replace("**", "*")
        states = _marked_before_stars(text.encode("ascii"))
        self.steps: int = 600 + len(states) // 3
        everywhere = (1 << len(states)) - 1
        self._starts = _where(states, _IS_START)
        self._lasts = (self._starts << 1) & everywhere | 1
        self._staying = _where(states, _IS_BEFORE_STAR) | self._starts
        octets = everywhere ^ self._starts
        self._ones = [_where(states, has_bit) & octets for has_bit in _HAS_BIT]
        self._zeros = [ones ^ octets for ones in self._ones]

    def strongest(self, path: str, start: int) -> int | None:
        """Return the position of the first rule that matches `path[start:]`, or None."""
        state, staying = self._starts, self._staying
        seen: dict[str, int] = {}
        for position in range(start, len(path), _AT_A_TIME):
            let_threads_switch()
            for character in path[position : position + _AT_A_TIME]:
                such = seen.get(character)
                if such is None:
                    such = seen[character] = self._such(_STAR if character == "*" else character)
                state = (state >> 1 & such) | (state & staying)
        matching = state & self._lasts
        return (self._starts >> matching.bit_length() - 1).bit_count() - 1 if matching else None

    def _such(self, character: str) -> int:
        """Return the states whose octet this character is."""
        octet = ord(character)
        if octet >> _BITS:
            return 0
        such = -1
        for bit in range(_BITS):
            such &= self._ones[bit] if octet >> bit & 1 else self._zeros[bit]
        return such


def _marked_before_stars(text: bytes) -> bytes:
    """Remove the stars; set the highest bit of each octet that was in front of a star."""
    stars = text.translate(_IS_STAR)
    marked = int.from_bytes(text, "big") | int.from_bytes(stars, "big") << 8
    return marked.to_bytes(len(text), "big").translate(None, b"*")


def _where(states: bytes, digits: bytes) -> int:
    """Return an integer with a bit for each state: the value of the state's octet in the table."""
    let_threads_switch()
    return int(states.translate(digits), 2)
