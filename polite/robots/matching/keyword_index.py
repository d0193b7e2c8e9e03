"""KeywordIndex: the wildcard rules of one head, each tried only where a piece of its text stands in the path."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from polite.robots.matching.pattern import Grammar, Shape, is_linear, shape_matches, shape_matches_linearly
from polite.robots.matching.shift_and import ShiftAnd

# Up to so many rules are quicker tried than looked up.
FEW = 24
# Up to so many keys are each looked for in the path; of more, what the path holds is looked for among them.
_FEW_KEYS = 24
# Of a rule whose longest piece has at most so many octets all pieces are is_linear.
_SHORT = 16
# Octets of a key: longer ones tell more rules apart, shorter ones are found in more rules.
_KEY = 6
# So many rules under one key are a crowd, and so many rules in buckets are walked at once.
_FULL_BUCKET = 16
_MOST_TRIED = 256
# Of so many rules nearly all are in buckets: then the rest is crowded with them, and needs no keys.
_SAMPLE = 1_024
_MOSTLY = 7 / 8
# For each octet of a path: to look for a rule's pieces, and for the keys that the path holds.
STEPS_OF_A_RULE = 6
_STEPS_OF_A_REPETITIVE_RULE = 60
_STEPS_OF_KEYS = 1_500
# Stands for the rules of a key that are.
_AUTOMATON = -1


class KeywordIndex:
    """The rules of one head by their ranks: a rank is a place in the order of precedence, 0 the strongest.

    Each rule is kept under a key, a few octets that every path it matches holds. The keys are kept by their first
    character, so that one glance at a path leaves out all whose character is not in it. `best`: the strongest rank here.
    `steps`: octets that are compared for each octet of a path, at most; about 0.35 ns each.
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
        """`head`: as it stands in paths. `ranks`: in their order. By rank, those of other heads too: `texts`, the normal forms;
        `tails`, what they have behind their first `*`, needed for more than FEW.
        """
        self.best = ranks[0]
        self._head = len(head)
        self._texts = texts
        self._grammar = grammar
        self._shapes: dict[int, Shape] = {}
        self._superlinear: set[int] = set()
        self._few: list[tuple[int, str, Shape]] = []
        self._by_character: dict[str, dict[str, int | list[int]]] = {}
        self._automaton: ShiftAnd | None = None
        self._in_automaton: Sequence[int] = ()
        # Of the rules without keys those with a piece that is not is_linear, in their order.
        self._repetitive: list[tuple[int, Shape]] = []
        # Whether each question looks at those rules, or at those that are crowded together.
        self._always_scans = False
        if len(ranks) > FEW:
            self._keep(ranks, tails)
        else:
            self._add_unkeyed(ranks)
        self._always_scans = self._always_scans or bool(self._repetitive)
        self.steps = self._cost(len(ranks))
        self._lengths = {len(key) for by_key in self._by_character.values() for key in by_key}

    def strongest(self, path: str, rank: int) -> int:
        """The rank of the strongest rule here that matches, when it is stronger than `rank`; else `rank`."""
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
        """The first of the ranks whose rule matches, when it is stronger than `rank`; else `rank`."""
        for each in (kept,) if isinstance(kept, int) else kept:
            if each >= rank:
                break
            # Taken apart when first tried: of a thousand rules most never are.
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
        """The same among the rules that repeat themselves, and those that are crowded together."""
        for each, shape in self._repetitive:
            if each >= rank:
                break
            if shape_matches_linearly(shape, path):
                rank = each
                break
        if self._automaton is None or self._in_automaton[0] >= rank:
            return rank
        place = self._automaton.strongest(path, self._head)
        return rank if place is None else min(rank, self._in_automaton[place])

    def _keys_in(self, character: str, by_key: Mapping[str, object], path: str) -> AbstractSet[str]:
        """The keys that stand in the path; all of them start with this character, or lie about a query."""
        if character == "?":
            places = range(len(path))
            return by_key.keys() & {path[at : at + length] for length in self._lengths for at in places}
        at = path.find(character)
        stretches = set()
        while at >= 0:
            for length in self._lengths:
                stretches.add(path[at : at + length])
            at = path.find(character, at + 1)
        return by_key.keys() & stretches

    def _add_unkeyed(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            shape = self._grammar.shape(self._texts[rank])
            if all(map(is_linear, shape[1])):
                self._few.append((rank, needle(shape), shape))
            else:
                self._repetitive.append((rank, shape))

    def _keep(self, ranks: Sequence[int], tails: Sequence[str]) -> None:
        """File the rules under their keys, and weave those together that keys do not tell apart."""
        buckets: list[tuple[dict[str, int | list[int]], str]] = []
        self._file(ranks[:_SAMPLE], tails, buckets)
        crowded = _in_full_buckets(buckets)
        self._always_scans = len(crowded) > _MOSTLY * _SAMPLE
        if self._always_scans:
            crowded += ranks[_SAMPLE:]
        else:
            self._file(ranks[_SAMPLE:], tails, buckets)
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
                few.append(rank)  # `/$` holds nothing to look for
                continue
            if len(held) > _SHORT and not all(
                map(is_linear, map(self._grammar.plain, tails[rank].split("*")))
            ):
                self._superlinear.add(rank)
            # Many rules are about a query, and most paths have none.
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


def _in_full_buckets(buckets: Sequence[tuple[Mapping[str, int | list[int]], str]]) -> list[int]:
    crowded: list[int] = []
    for by_key, key in buckets:
        kept = by_key[key]
        crowded.extend((kept,) if isinstance(kept, int) else kept)
    return crowded


def needle(shape: Shape) -> str:
    """The longest text that every path of that shape holds behind its head."""
    pieces = shape[1]
    return pieces[0] if len(pieces) == 1 else max(pieces, key=len, default="")
