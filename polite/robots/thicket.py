"""Thicket: the wildcard rules of one head, each tried only where a piece of its text stands in the path."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from polite.robots.loom import Loom
from polite.robots.pattern import Grammar, Shape, fits

# Up to so many rules are quicker tried than looked up.
FEW = 24
# Up to so many keys are each looked for in the path; of more, what the path holds is looked for among them.
_FEW_KEYS = 12
# Octets of a key: longer ones tell more rules apart, shorter ones are found in more rules.
_KEY = 6
# So many rules under one key are a crowd, and so many rules in crowds are walked at once.
_CROWD = 16
_MOST_TRIED = 256


class Thicket:
    """The rules of one head by their ranks: a rank is a place in the order of precedence, 0 the strongest.

    Each rule is kept under a key, a few octets that every path it matches holds. The keys are kept by their first
    character, so that one glance at a path leaves out all whose character is not in it. `best`: the strongest rank here.
    """

    __slots__ = (
        "_by_character",
        "_few",
        "_grammar",
        "_head",
        "_lengths",
        "_loom",
        "_shapes",
        "_texts",
        "_woven",
        "best",
    )

    def __init__(self, head: str, ranks: Sequence[int], texts: Sequence[str], grammar: Grammar) -> None:
        """`head`: as it stands in paths. `ranks`: in their order. `texts`: normal forms by rank, those of other heads too."""
        self.best = ranks[0]
        self._head = len(head)
        self._texts = texts
        self._grammar = grammar
        self._shapes: dict[int, Shape] = {}
        self._few: list[tuple[int, str, Shape]] = []
        self._by_character: dict[str, dict[str, int | list[int]]] = {}
        self._loom: Loom | None = None
        self._woven: Sequence[int] = ()
        if len(ranks) > FEW:
            self._keep(ranks)
        else:
            self._put_by(ranks)
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
        for character, by_key in self._by_character.items():
            if character in path:
                for key in by_key if len(by_key) <= _FEW_KEYS else self._standing(character, by_key, path):
                    if key in path:
                        rank = self._first(by_key[key], path, rank)
        if self._loom is not None and self._woven[0] < rank:
            place = self._loom.strongest(path, self._head)
            if place is not None:
                rank = min(rank, self._woven[place])
        return rank

    def _first(self, kept: int | list[int], path: str, rank: int) -> int:
        """The first of the ranks whose rule matches, when it is stronger than `rank`; else `rank`."""
        for each in (kept,) if isinstance(kept, int) else kept:
            if each >= rank:
                break
            # Taken apart when first tried: of a thousand rules most never are.
            shape = self._shapes.get(each)
            if shape is None:
                shape = self._shapes[each] = self._grammar.shape(self._texts[each])
            if fits(shape, path):
                return each
        return rank

    def _standing(self, character: str, by_key: Mapping[str, object], path: str) -> AbstractSet[str]:
        """The keys that stand in the path; all of them start with this character."""
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
            self._few.append((rank, needle(shape), shape))

    def _keep(self, ranks: Sequence[int]) -> None:
        """File the rules under their keys."""
        texts, by_character = self._texts, self._by_character
        crowds: list[tuple[dict[str, int | list[int]], str]] = []
        few: list[int] = []
        for rank in ranks:
            _, _, held = texts[rank].partition("*")
            if held[-1:] == "$":
                held = held[:-1]
            if "*" in held:
                held = max(held.split("*"), key=len)
            key = held[-_KEY:]
            if "%2" in held:
                key = self._grammar.plain(held)[-_KEY:]
            if not key:
                few.append(rank)  # `/$` holds nothing to look for
                continue
            by_key = by_character.get(key[0])
            if by_key is None:
                by_key = by_character[key[0]] = {}
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
        if crowds:
            self._weave(crowds)

    def _weave(self, crowds: Sequence[tuple[dict[str, int | list[int]], str]]) -> None:
        """Where many rules would have to be tried, because hardly anything tells them apart, they are walked at once."""
        woven: list[int] = []
        for by_key, key in crowds:
            kept = by_key[key]
            woven.extend((kept,) if isinstance(kept, int) else kept)
        if len(woven) > _MOST_TRIED:
            woven.sort()
            texts = self._texts
            tails = [texts[rank].partition("*")[2] for rank in woven]
            self._loom = Loom(tails, plain_specials=self._grammar.plain_specials)
            self._woven = tuple(woven)
            for by_key, key in crowds:
                del by_key[key]


def needle(shape: Shape) -> str:
    """The longest text that every path of that shape holds behind its head."""
    pieces = shape[1]
    return pieces[0] if len(pieces) == 1 else max(pieces, key=len, default="")
