"""KeywordIndex: finds wildcard rules of one head by a keyword that the path must contain."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import NamedTuple

from polite.robots.dialect import let_threads_switch
from polite.robots.matching.pattern import (
    Grammar,
    Matcher,
    Shape,
    is_linear,
    shape_matches,
    shape_matches_linearly,
)
from polite.robots.matching.shift_and import ShiftAnd

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
_MOST_TRIED = 256
# If nearly all of the first _SAMPLE rules are in full buckets, the remaining rules go to the automaton without keys.
_SAMPLE = 1_024
_MOSTLY = 7 / 8
# Rules that are filed between two moments at which threads may switch.
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
        # Whether each search must try those rules, or run the automaton.
        self._always_scans = False
        if len(ranks) > FEW:
            self._shapes, self._by_character = {}, {}
            self._keep(ranks, tails)
        else:
            self._add_unkeyed(ranks)
        self._always_scans = self._always_scans or bool(self._repetitive)
        self.steps: int = self._cost(len(ranks))
        self._lengths: AbstractSet[int] = (
            {len(key) for by_key in self._by_character.values() for key in by_key}
            if self._by_character
            else _NONE
        )

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
        buckets: list[tuple[dict[str, int | list[int]], str]] = []
        self._file(ranks[:_SAMPLE], tails, buckets)
        crowded = _in_full_buckets(buckets)
        self._always_scans = len(crowded) > _MOSTLY * _SAMPLE
        if self._always_scans:
            crowded += ranks[_SAMPLE:]
        else:
            for start in range(_SAMPLE, len(ranks), _AT_A_TIME):
                let_threads_switch()
                self._file(ranks[start : start + _AT_A_TIME], tails, buckets)
            crowded = _in_full_buckets(buckets)
        if len(crowded) > _MOST_TRIED:
            crowded.sort()
            self._automaton = ShiftAnd(
                [tails[rank] for rank in crowded], plain_specials=self._grammar.plain_specials
            )
            self._in_automaton = tuple(crowded)
            for by_key, key in buckets:
                by_key[key] = _AUTOMATON

    def _file(
        self,
        ranks: Sequence[int],
        tails: Sequence[str],
        buckets: list[tuple[dict[str, int | list[int]], str]],
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
                    buckets.append((by_key, key))
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


def _in_full_buckets(buckets: Sequence[tuple[Mapping[str, int | list[int]], str]]) -> list[int]:
    crowded: list[int] = []
    for by_key, key in buckets:
        kept = by_key[key]
        crowded.extend((kept,) if isinstance(kept, int) else kept)
    return crowded


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
