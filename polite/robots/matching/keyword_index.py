"""Thicket: the wildcard rules of one head, each tried only where a piece of its text stands in the path."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from polite.robots.matching.pattern import Grammar, Shape, fits, fits_linearly, tame
from polite.robots.matching.shift_and import Loom

# Up to so many rules are quicker tried than looked up.
FEW = 24
# Up to so many keys are each looked for in the path; of more, what the path holds is looked for among them.
_FEW_KEYS = 24
# Of a rule whose longest piece has at most so many octets all pieces are tame.
_SHORT = 16
# Octets of a key: longer ones tell more rules apart, shorter ones are found in more rules.
_KEY = 6
# So many rules under one key are a crowd, and so many rules in crowds are walked at once.
_CROWD = 16
_MOST_TRIED = 256
# Of so many rules nearly all are in crowds: then the rest is woven with them, and needs no keys.
_SAMPLE = 1_024
_MOSTLY = 7 / 8
# For each octet of a path: to look for a rule's pieces, and for the keys that the path holds.
STEPS_OF_A_RULE = 6
_STEPS_OF_A_REPETITIVE_RULE = 60
_STEPS_OF_KEYS = 1_500
# Stands for the rules of a key that are.
_WOVEN = -1


class Thicket:
    """The rules of one head by their ranks: a rank is a place in the order of precedence, 0 the strongest.

    Each rule is kept under a key, a few octets that every path it matches holds. The keys are kept by their first
    character, so that one glance at a path leaves out all whose character is not in it. `best`: the strongest rank here.
    `steps`: octets that are compared for each octet of a path, at most; about 0.35 ns each.
    """

    __slots__ = (
        "_by_character",
        "_few",
        "_grammar",
        "_head",
        "_lengths",
        "_loom",
        "_repetitive",
        "_shapes",
        "_slowly",
        "_texts",
        "_untame",
        "_woven",
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
        self._untame: set[int] = set()
        self._few: list[tuple[int, str, Shape]] = []
        self._by_character: dict[str, dict[str, int | list[int]]] = {}
        self._loom: Loom | None = None
        self._woven: Sequence[int] = ()
        # Of the rules without keys those with a piece that is not tame, in their order.
        self._repetitive: list[tuple[int, Shape]] = []
        # Whether each question looks at those rules, or at those that are woven together.
        self._slowly = False
        if len(ranks) > FEW:
            self._keep(ranks, tails)
        else:
            self._put_by(ranks)
        self._slowly = self._slowly or bool(self._repetitive)
        self.steps = self._weighed(len(ranks))
        self._lengths = {len(key) for by_key in self._by_character.values() for key in by_key}

    def strongest(self, path: str, rank: int) -> int:
        """The rank of the strongest rule here that matches, when it is stronger than `rank`; else `rank`."""
        for each, held, shape in self._few:
            if held in path:
                if each >= rank:
                    break
                if fits(shape, path):
                    rank = each
                    break
        slowly = self._slowly
        for character, by_key in self._by_character.items():
            if character in path:
                for key in by_key if len(by_key) <= _FEW_KEYS else self._standing(character, by_key, path):
                    if key in path:
                        kept = by_key[key]
                        if kept == _WOVEN:
                            slowly = True
                        else:
                            rank = self._first(kept, path, rank)
        return self._found_slowly(path, rank) if slowly else rank

    def _weighed(self, rules: int) -> int:
        steps = STEPS_OF_A_RULE * (rules - len(self._woven))
        steps += _STEPS_OF_A_REPETITIVE_RULE * (len(self._repetitive) + len(self._untame))
        if self._by_character:
            steps += _STEPS_OF_KEYS
        return steps if self._loom is None else steps + self._loom.steps

    def _first(self, kept: int | list[int], path: str, rank: int) -> int:
        """The first of the ranks whose rule matches, when it is stronger than `rank`; else `rank`."""
        for each in (kept,) if isinstance(kept, int) else kept:
            if each >= rank:
                break
            # Taken apart when first tried: of a thousand rules most never are.
            shape = self._shapes.get(each)
            if shape is None:
                shape = self._shapes[each] = self._grammar.shape(self._texts[each])
            if fits_linearly(shape, path) if each in self._untame else fits(shape, path):
                return each
        return rank

    def _found_slowly(self, path: str, rank: int) -> int:
        """The same among the rules that repeat themselves, and those that are woven together."""
        for each, shape in self._repetitive:
            if each >= rank:
                break
            if fits_linearly(shape, path):
                rank = each
                break
        if self._loom is None or self._woven[0] >= rank:
            return rank
        place = self._loom.strongest(path, self._head)
        return rank if place is None else min(rank, self._woven[place])

    def _standing(self, character: str, by_key: Mapping[str, object], path: str) -> AbstractSet[str]:
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

    def _put_by(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            shape = self._grammar.shape(self._texts[rank])
            if all(map(tame, shape[1])):
                self._few.append((rank, needle(shape), shape))
            else:
                self._repetitive.append((rank, shape))

    def _keep(self, ranks: Sequence[int], tails: Sequence[str]) -> None:
        """File the rules under their keys, and weave those together that keys do not tell apart."""
        crowds: list[tuple[dict[str, int | list[int]], str]] = []
        self._file(ranks[:_SAMPLE], tails, crowds)
        woven = _in_crowds(crowds)
        self._slowly = len(woven) > _MOSTLY * _SAMPLE
        if self._slowly:
            woven += ranks[_SAMPLE:]
        else:
            self._file(ranks[_SAMPLE:], tails, crowds)
            woven = _in_crowds(crowds)
        if len(woven) > _MOST_TRIED:
            woven.sort()
            self._loom = Loom([tails[rank] for rank in woven], plain_specials=self._grammar.plain_specials)
            self._woven = tuple(woven)
            for by_key, key in crowds:
                by_key[key] = _WOVEN

    def _file(
        self,
        ranks: Sequence[int],
        tails: Sequence[str],
        crowds: list[tuple[dict[str, int | list[int]], str]],
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
            if len(held) > _SHORT and not all(map(tame, map(self._grammar.plain, tails[rank].split("*")))):
                self._untame.add(rank)
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
                if len(kept) == _CROWD:
                    crowds.append((by_key, key))
        self._put_by(few)


def _in_crowds(crowds: Sequence[tuple[Mapping[str, int | list[int]], str]]) -> list[int]:
    woven: list[int] = []
    for by_key, key in crowds:
        kept = by_key[key]
        woven.extend((kept,) if isinstance(kept, int) else kept)
    return woven


def needle(shape: Shape) -> str:
    """The longest text that every path of that shape holds behind its head."""
    pieces = shape[1]
    return pieces[0] if len(pieces) == 1 else max(pieces, key=len, default="")
