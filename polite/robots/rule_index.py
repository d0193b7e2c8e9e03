"""RuleIndex: which of many rules decides about a path, found without trying each.

Theory of operation. Rules come in normal form and in the order of precedence (`pattern`, `rules`); a rule's position in that
order is its rank, 0 for the strongest. To decide is to find the smallest rank that matches.

A `Prefilter` decides most paths: it knows a few literal starts and needles, and no Disallow can match without one. A `RuleIndex`
decides the others. It finds literal rules by binary search over their heads. Rules with wildcards are filed at their heads in a
`KeywordIndex`, under a keyword that every matching path contains. Rules that keywords do not tell apart run together in one
bit-parallel Shift-And automaton (`ShiftAnd`; Baeza-Yates and Gonnet, 1992).

Every step is linear in the length of the path, whatever the rules contain. `docs/explanation/matching.md` tells more.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress, repeat
from typing import NamedTuple

from polite.robots.dialect import let_threads_switch
from polite.robots.pattern import Grammar, Matcher, Shape, is_linear, shape_matches, shape_matches_linearly

_BITS = 7  # a normal form is ASCII
_END = "\n"  # is in no rule
# Stands for an escaped star, which means itself; `#` is neither in rules nor in paths.
_STAR = "#"

# Octets of a path between two moments at which threads may switch: at most half a millisecond.
_OCTETS_AT_A_TIME = 32

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
        for position in range(start, len(path), _OCTETS_AT_A_TIME):
            let_threads_switch()
            for character in path[position : position + _OCTETS_AT_A_TIME]:
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


# Up to this many rules, trying each is faster than looking them up.
FEW = 24
# Up to this many keys are each searched for in the path. Of more keys, the path's substrings are looked up instead.
_FEW_KEYS = 24
# If the longest piece of a rule has at most this many octets, `is_linear` holds for all of its pieces.
_SHORT = 16
# Octets of a key. Longer keys tell more rules apart; shorter keys exist in more rules.
_KEY = 6
# From this many rules on, a key's bucket is full. Rules in full buckets run in the automaton if there are more than
# _MOST_TRIED of them.
_FULL_BUCKET = 16
_MOST_IN_FULL_BUCKETS = 256
# If nearly all of the first _SAMPLE rules are in full buckets, the remaining rules go to the automaton without keys.
_SAMPLE = 1_024
_MOSTLY = 7 / 8
# Rules that are filed or indexed between two moments at which threads may switch.
_AT_A_TIME = 1_024
# Steps for each octet of a path: to search for a rule's pieces, and to look up the keys.
STEPS_OF_A_RULE = 6
_STEPS_OF_A_REPETITIVE_RULE = 60
_STEPS_OF_KEYS = 1_500
# Stored for a key whose rules are in the automaton.
_AUTOMATON = -1
# Never changed.
_NONE: frozenset[int] = frozenset()
_NO_SHAPES: dict[int, Shape] = {}
_NO_FEW: Sequence[tuple[int, str, Shape]] = ()
_NO_REPETITIVE: Sequence[tuple[int, Shape]] = ()
_NO_KEYS: dict[str, dict[str, int | list[int]]] = {}


class KeywordIndex:
    """Finds the strongest matching rule among the wildcard rules of one head.

    Each rule is filed under a key: up to six octets that every path it matches contains. Keys are grouped by their
    first character, so one look at a path skips every group whose character it lacks.

    Attributes:
        best: the strongest rank in this index. A rank is a position in the order of precedence, 0 the strongest.
        steps: the upper bound of octets compared for each octet of a path; about 0.35 ns each.
    """

    __slots__ = (
        "_always_scans",
        "_automaton",
        "_by_character",
        "_few",
        "_grammar",
        "_head",
        "_in_automaton",
        "_lengths",
        "_repetitive",
        "_shapes",
        "_superlinear",
        "_texts",
        "best",
        "steps",
    )

    def __init__(
        self,
        head: str,
        ranks: Sequence[int],
        texts: Sequence[str],
        grammar: Grammar,
        tails: Sequence[str] = (),
    ) -> None:
        """Build the index.

        Args:
            head: the literal text before the first `*` of these rules, as it stands in paths.
            ranks: the ranks of these rules, ascending.
            texts: by rank, the normal forms of all rules, those of other heads included.
            grammar: how the dialect reads paths.
            tails: by rank, the text behind the first `*`. Needed for more than FEW rules.
        """
        self.best: int = ranks[0]
        self._head = len(head)
        self._texts = texts
        self._grammar = grammar
        # Most indexes have a few rules and no keys. They share what is empty.
        self._shapes: dict[int, Shape] = _NO_SHAPES
        self._superlinear: AbstractSet[int] = _NONE
        self._few: Sequence[tuple[int, str, Shape]] = _NO_FEW
        self._by_character: dict[str, dict[str, int | list[int]]] = _NO_KEYS
        self._automaton: ShiftAnd | None = None
        self._in_automaton: Sequence[int] = ()
        # Rules without a key that have a piece for which `is_linear` does not hold, by rank.
        self._repetitive: Sequence[tuple[int, Shape]] = _NO_REPETITIVE
        self._lengths: AbstractSet[int] = _NONE
        # Whether each search must try those rules, or run the automaton.
        self._always_scans = False
        if len(ranks) > FEW:
            self._shapes, self._by_character = {}, {}
            self._keep(ranks, tails)
            self._lengths = {len(key) for by_key in self._by_character.values() for key in by_key}
        else:
            self._add_unkeyed(ranks)
        self._always_scans = self._always_scans or bool(self._repetitive)
        self.steps: int = self._cost(len(ranks))

    def strongest(self, path: str, rank: int) -> int:
        """Return the strongest matching rank if it is stronger than `rank`, else `rank`."""
        for each, held, shape in self._few:
            if held in path:
                if each >= rank:
                    break
                if shape_matches(shape, path):
                    rank = each
                    break
        scans = self._always_scans
        for character, by_key in self._by_character.items():
            if character in path:
                for key in by_key if len(by_key) <= _FEW_KEYS else self._keys_in(character, by_key, path):
                    if key in path:
                        kept = by_key[key]
                        if kept == _AUTOMATON:
                            scans = True
                        else:
                            rank = self._first(kept, path, rank)
        return self._scan(path, rank) if scans else rank

    def _cost(self, rules: int) -> int:
        steps = STEPS_OF_A_RULE * (rules - len(self._in_automaton))
        steps += _STEPS_OF_A_REPETITIVE_RULE * (len(self._repetitive) + len(self._superlinear))
        if self._by_character:
            steps += _STEPS_OF_KEYS
        return steps if self._automaton is None else steps + self._automaton.steps

    def _first(self, kept: int | list[int], path: str, rank: int) -> int:
        let_threads_switch()
        for each in (kept,) if isinstance(kept, int) else kept:
            if each >= rank:
                break
            # Parsed when first tried: of a thousand rules, most never are.
            shape = self._shapes.get(each)
            if shape is None:
                shape = self._shapes[each] = self._grammar.shape(self._texts[each])
            if (
                shape_matches_linearly(shape, path)
                if each in self._superlinear
                else shape_matches(shape, path)
            ):
                return each
        return rank

    def _scan(self, path: str, rank: int) -> int:
        """Do what `strongest` does, for repetitive rules without a key and for the automaton."""
        for each, shape in self._repetitive:
            let_threads_switch()
            if each >= rank:
                break
            if shape_matches_linearly(shape, path):
                rank = each
                break
        if self._automaton is None or self._in_automaton[0] >= rank:
            return rank
        position = self._automaton.strongest(path, self._head)
        return rank if position is None else min(rank, self._in_automaton[position])

    def _keys_in(self, character: str, by_key: Mapping[str, object], path: str) -> AbstractSet[str]:
        """Return the keys in the path that start with `character`, or contain it if it is "?"."""
        positions: Sequence[int] = range(len(path)) if character == "?" else _positions(character, path)
        stretches: set[str] = set()
        for length in self._lengths:
            let_threads_switch()
            stretches.update([path[at : at + length] for at in positions])
        return by_key.keys() & stretches

    def _add_unkeyed(self, ranks: Sequence[int]) -> None:
        shapes = [(rank, self._grammar.shared_shape(self._texts[rank])) for rank in ranks]
        linear = [all(map(is_linear, shape[1])) for _, shape in shapes]
        # Tuples take less memory than lists.
        few = [(rank, needle(shape), shape) for rank, shape in compress(shapes, linear)]
        repetitive = [each for each, is_fast in zip(shapes, linear, strict=True) if not is_fast]
        self._few, self._repetitive = (*self._few, *few), (*self._repetitive, *repetitive)

    def _keep(self, ranks: Sequence[int], tails: Sequence[str]) -> None:
        """File the rules under keys; put rules that keys do not tell apart into the automaton."""
        # Each full one, by its key: a key's bucket stays the same list.
        buckets: list[tuple[dict[str, int | list[int]], str, list[int]]] = []
        self._file(ranks[:_SAMPLE], tails, buckets)
        crowded = [rank for _, _, bucket in buckets for rank in bucket]
        self._always_scans = len(crowded) > _MOSTLY * _SAMPLE
        if self._always_scans:
            crowded += ranks[_SAMPLE:]
        else:
            for start in range(_SAMPLE, len(ranks), _AT_A_TIME):
                let_threads_switch()
                self._file(ranks[start : start + _AT_A_TIME], tails, buckets)
            crowded = [rank for _, _, bucket in buckets for rank in bucket]
        if len(crowded) > _MOST_IN_FULL_BUCKETS:
            crowded.sort()
            self._automaton = ShiftAnd(
                [tails[rank] for rank in crowded], plain_specials=self._grammar.plain_specials
            )
            self._in_automaton = tuple(crowded)
            for by_key, key, _ in buckets:
                by_key[key] = _AUTOMATON

    def _file(
        self,
        ranks: Sequence[int],
        tails: Sequence[str],
        buckets: list[tuple[dict[str, int | list[int]], str, list[int]]],
    ) -> None:
        by_character = self._by_character
        few: list[int] = []
        superlinear: set[int] = set()
        for rank in ranks:
            held = tails[rank]
            if held[-1:] == "$":
                held = held[:-1]
            if "*" in held:
                held = max(held.split("*"), key=len)
            if "%2" in held:
                held = self._grammar.plain(held)
            key = held[-_KEY:]
            if not key:
                few.append(rank)  # `/$` has no text to search for
                continue
            if len(held) > _SHORT and not all(
                map(is_linear, map(self._grammar.plain, tails[rank].split("*")))
            ):
                superlinear.add(rank)
            # Many rules are about a query, and most paths have no query.
            character = "?" if "?" in held else key[0]
            by_key = by_character.get(character)
            if by_key is None:
                by_key = by_character[character] = {}
            kept = by_key.get(key)
            if kept is None:
                by_key[key] = rank  # most keys have one rule, which needs no list
            elif isinstance(kept, int):
                by_key[key] = [kept, rank]
            else:
                kept.append(rank)
                if len(kept) == _FULL_BUCKET:
                    buckets.append((by_key, key, kept))
        self._add_unkeyed(few)
        if superlinear:
            self._superlinear |= superlinear


def _positions(character: str, path: str) -> list[int]:
    found: list[int] = []
    at = path.find(character)
    while at >= 0:
        found.append(at)
        at = path.find(character, at + 1)
    return found


def needle(shape: Shape) -> str:
    """Return the longest text that every path of this shape contains behind its head."""
    pieces = shape[1]
    return pieces[0] if len(pieces) == 1 else max(pieces, key=len, default="")


class Prefilter(NamedTuple):
    """The literal starts and the needles of a few Disallow rules.

    A path that starts with none of `starts` and has none of `shapes` is matched by no Disallow.

    Attributes:
        starts: the literal rules.
        shapes: for each rule with wildcards a needle, which every path that it matches contains, and its shape.
        certain: whether every other path is disallowed. True if the rule set has no Allow.
    """

    starts: tuple[str, ...]
    shapes: tuple[tuple[str, Shape], ...]
    certain: bool


# Up to this many starts, one call of `startswith` is faster than the index.
MOST_RULES = 32

ALL_ALLOWED = Prefilter((), (), certain=True)
ALL_DENIED = Prefilter(("",), (), certain=True)
# Every path is left to the index: there are too many rules, or the prefilter was not built yet.
PASSES_NOTHING = Prefilter(("/",), (), certain=False)
NOT_BUILT = Prefilter(("",), (), certain=False)


def build_prefilter(disallowed: Iterable[Matcher], *, certain: bool) -> Prefilter:
    """Return the prefilter of a few Disallow rules.

    Returns PASSES_NOTHING if a path could make the search for the rules' pieces slow. The index bounds that.

    Args:
        disallowed: what the Disallow rules match.
        certain: whether the rule set has no Allow.
    """
    starts: dict[str, None] = {}
    shapes: list[tuple[str, Shape]] = []
    for each in disallowed:
        if isinstance(each, str):
            starts[each] = None
        else:
            # The longest text is the best needle: `/*?sort=` starts like every path, and the text behind the star tells more.
            held = max(needle(each), each[0], key=len)
            if not (is_linear(held) and all(map(is_linear, each[1]))):
                return PASSES_NOTHING
            shapes.append((held, each))
    return Prefilter(tuple(starts), tuple(shapes), certain)


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


_NOWHERE = -1
# Rules in small keyword indexes that are cached once made. One rule takes up to 1.5 kB, and a hostile file has a head for each
# of its rules.
MAX_CACHED_RULES = 1_000
# The ranks of one head's wildcard rules. Most heads have one rule, which needs no list.
_Ranks = int | list[int]


class RuleIndex:
    """The rules of one rule set by their literal heads (docs/explanation/matching.md).

    A head is the literal text before a rule's first `*`. The heads are sorted. The longest head that starts a path is
    the one right before the path in this order, or an ancestor of it: a head's parent is the longest other head that it
    starts with. The root is the empty head. Each head stores the strongest literal rank among itself and its ancestors,
    and the nearest of these that has wildcard rules.

    Attributes:
        none: the rank that stands for "no rule".
        steps: the upper bound of octets compared for each octet of a path.
    """

    __slots__ = (
        "_cacheable",
        "_grammar",
        "_heads",
        "_indexes",
        "_parents",
        "_ranks",
        "_texts",
        "_wild",
        "none",
        "steps",
    )

    def __init__(self, texts: Sequence[str], grammar: Grammar) -> None:
        """Build the index.

        Args:
            texts: normal forms, the strongest rule first. A rule's position is its rank.
            grammar: how the dialect reads paths.
        """
        self.none: int = len(texts)
        # Needed for rules with wildcards only.
        self._texts: Sequence[str] = texts
        self._grammar = grammar
        # A keyword index of few rules is made when first needed; until then its ranks are stored.
        self._indexes: dict[int, KeywordIndex | _Ranks] = {}
        self._cacheable = MAX_CACHED_RULES
        literal, wild, tails = self._by_head()
        self._link(literal, wild, are_heads=not tails)
        self.steps: int = STEPS_OF_A_RULE * len(wild)
        for head, ranks in wild.items():
            if not isinstance(ranks, list):
                continue
            if len(ranks) <= FEW:
                self.steps += STEPS_OF_A_RULE * (len(ranks) - 1)
            else:
                index = KeywordIndex(head, ranks, texts, grammar, tails)
                self._indexes[bisect_left(self._heads, head)] = index
                self.steps += index.steps - STEPS_OF_A_RULE
        let_threads_switch()
        if not wild:
            self._texts = ()

    def strongest(self, path: str, *, any_will_do: bool = False) -> int:
        """Return the strongest rank that matches a path in normal form, or `none`.

        Args:
            path: the path in normal form.
            any_will_do: whether any matching rank may be returned.
        """
        heads = self._heads
        at = bisect_right(heads, path) - 1
        while not path.startswith(heads[at]):
            at = self._parents[at]
        rank = self._ranks[at]
        if not self._wild or (any_will_do and rank != self.none):
            return rank
        at = self._wild[at]
        while at >= 0:
            index = self._indexes[at]
            if not isinstance(index, KeywordIndex):
                ranks = (index,) if isinstance(index, int) else index
                index = KeywordIndex(heads[at], ranks, self._texts, self._grammar)
                if self._cacheable > 0:
                    self._cacheable -= len(ranks)
                    self._indexes[at] = index
            if index.best < rank:
                rank = index.strongest(path, rank)
            if not at:
                break
            let_threads_switch()
            at = self._wild[self._parents[at]]
        return rank

    def _by_head(self) -> tuple[dict[str, int], dict[str, _Ranks], list[str]]:
        """Group the rules by head.

        Returns the strongest literal rule of each head, all wildcard rules of each head, and by rank the text behind the
        first `*`. There are no such texts if each rule is its own head.
        """
        literal: dict[str, int] = {}
        wild: dict[str, _Ranks] = {}
        tails: list[str] = []
        grammar, has_wildcards = self._grammar, self._grammar.has_wildcards
        together = "\n".join(self._texts)
        escapes = grammar.plain_specials and "%2" in together
        if not escapes and not (has_wildcards and ("*" in together or "$" in together)):
            return dict(zip(self._texts, range(len(self._texts)), strict=True)), wild, tails
        star = "*" if has_wildcards else "\n"  # LF is in no rule
        anchors = has_wildcards and "$" in together
        place = wild.setdefault
        for start in range(0, len(self._texts), _AT_A_TIME):
            let_threads_switch()
            # Hot path: `map` takes less time than a call for each rule.
            parts = list(map(str.partition, self._texts[start : start + _AT_A_TIME], repeat(star)))
            tails += [tail for _, _, tail in parts]
            for rank, (before, wildcard, tail) in enumerate(parts, start):
                head = before
                # A last `*` has no effect.
                is_wild = wildcard != "" and tail != "" and tail != "$"
                if not wildcard and anchors and before[-1:] == "$":
                    head, is_wild = before[:-1], True
                if escapes and "%2" in head:
                    head = grammar.plain(head)
                if not is_wild:
                    literal.setdefault(head, rank)
                    continue
                kept = place(head, rank)
                if isinstance(kept, list):
                    kept.append(rank)
                elif kept != rank:
                    wild[head] = [kept, rank]
        return literal, wild, tails

    def _link(self, literal: Mapping[str, int], wild: Mapping[str, _Ranks], *, are_heads: bool) -> None:
        """Find each head's parent, and give each head what its ancestors know. Parents come first.

        Args:
            literal: the strongest literal rule of each head.
            wild: all wildcard rules of each head.
            are_heads: whether each rule is its own head. Then it is longer, hence stronger, than its ancestors.
        """
        # A tuple: the garbage collector does not track tuples of texts, but visits the items of a list in each
        # collection, and the event loop waits for it.
        self._heads = heads = (
            ("", *sorted(literal)) if are_heads else tuple(sorted(dict.fromkeys(("", *literal, *wild))))
        )
        let_threads_switch()
        # Whether the next head starts with this one. Most heads start no other.
        is_parent = [*map(str.startswith, heads[1:], heads), False]
        let_threads_switch()
        parents = _parents(heads, is_parent)
        let_threads_switch()
        inner = list(compress(range(1, len(heads)), is_parent[1:]))
        ranks = list(map(literal.get, heads, repeat(self.none))) if literal else [self.none] * len(heads)
        if literal and not are_heads:
            for at in inner:
                ranks[at] = min(ranks[at], ranks[parents[at]])
            ranks = list(map(min, ranks, map(ranks.__getitem__, parents)))
        let_threads_switch()
        wilds: list[int] = []
        if wild:
            found = list(map(wild.get, heads))
            self._indexes = {at: kept for at, kept in enumerate(found) if kept is not None}
            wilds = [_NOWHERE if kept is None else at for at, kept in enumerate(found)]
            let_threads_switch()
            if None in found[1:]:
                for at in inner:
                    if wilds[at] < 0:
                        wilds[at] = wilds[parents[at]]
                wilds = [at if at >= 0 else wilds[parent] for at, parent in zip(wilds, parents, strict=True)]
        let_threads_switch()
        self._parents = compact(parents)
        self._ranks = compact(ranks)
        self._wild = compact(wilds)


def _parents(heads: Sequence[str], is_parent: Sequence[bool]) -> list[int]:
    """Return each head's parent. The root is its own.

    Args:
        heads: the heads, sorted, the root first.
        is_parent: for each head, whether it is the parent of the next one.
    """
    parents: list[int] = []
    ancestors: list[int] = []
    parent, start = 0, ""
    for at, head in enumerate(heads):
        while not head.startswith(start):
            parent = ancestors.pop()
            start = heads[parent]
        parents.append(parent)
        if is_parent[at]:
            ancestors.append(parent)
            parent, start = at, head
    return parents
