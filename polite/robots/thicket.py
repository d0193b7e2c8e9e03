"""Thicket: the wildcard rules of one head, each tried only where a rare piece of its text stands in the path."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from polite.robots.pattern import Shape, fits

# Up to so many rules are quicker tried than looked up.
_FEW = 24
# Up to so many keys are each looked for in the path; of more, what the path holds is looked for among them.
_FEW_KEYS = 12
# Octets of a key: longer ones tell more rules apart, shorter ones are found in more rules.
_KEY = 6
# What seldom stands in a path: a key starts there.
_RARE = re.compile(r"[^a-z/.]").search


class Thicket:
    """The rules of one head by their ranks: a rank is a place in the order of precedence, 0 the strongest.

    Each rule is kept under a key, a few octets that every path it matches holds. The keys are kept by their first
    character, so that one glance at a path leaves out all whose character is not in it. `best`: the strongest rank here.
    """

    __slots__ = ("_by_character", "_few", "_lengths", "_shapes", "best")

    def __init__(self, ranks: list[int], shapes: Mapping[int, Shape]) -> None:
        """`ranks`: in their order. `shapes`: by rank; may hold those of other heads too."""
        self.best = ranks[0]
        self._shapes = shapes
        self._few: list[tuple[int, str, Shape]] = []
        self._by_character: dict[str, dict[str, int | list[int]]] = {}
        self._lengths: set[int] = set()
        crowd = len(ranks) > _FEW
        for rank in ranks:
            held = needle(shapes[rank])
            # `/$` holds nothing to look for.
            if crowd and held:
                self._keep(_key(held), rank)
            else:
                self._few.append((rank, held, shapes[rank]))

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
                for key in by_key if len(by_key) <= _FEW_KEYS else self._standing(by_key, path):
                    if key in path:
                        rank = self._first(by_key[key], path, rank)
        return rank

    def _first(self, kept: int | list[int], path: str, rank: int) -> int:
        """The first of the ranks whose rule matches, when it is stronger than `rank`; else `rank`."""
        for each in (kept,) if isinstance(kept, int) else kept:
            if each >= rank:
                break
            shape = self._shapes[each]
            # Nearly all fail here, and fail sooner than a call would take: a file may hold thousands under one key.
            at = 0
            for piece in shape[1]:
                at = path.find(piece, at)
                if at < 0:
                    break
            else:
                if fits(shape, path):
                    return each
        return rank

    def _standing(self, by_key: Mapping[str, object], path: str) -> AbstractSet[str]:
        """The keys that stand in the path; all of them start with one character."""
        character = next(iter(by_key))[0]
        at = path.find(character)
        stretches = set()
        while at >= 0:
            for length in self._lengths:
                stretches.add(path[at : at + length])
            at = path.find(character, at + 1)
        return by_key.keys() & stretches

    def _keep(self, key: str, rank: int) -> None:
        by_key = self._by_character.setdefault(key[0], {})
        kept = by_key.get(key)
        if kept is None:
            by_key[key] = rank  # most keys have one rule, which needs no list
            self._lengths.add(len(key))
        elif isinstance(kept, int):
            by_key[key] = [kept, rank]
        else:
            kept.append(rank)


def needle(shape: Shape) -> str:
    """The longest text that every path of that shape holds behind its head."""
    pieces = shape[1]
    return pieces[0] if len(pieces) == 1 else max(pieces, key=len, default="")


def _key(held: str) -> str:
    rare = _RARE(held)
    at = 0 if rare is None else max(0, min(rare.start(), len(held) - _KEY))
    return held[at : at + _KEY]
