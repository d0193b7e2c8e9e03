"""Thicket: the wildcard rules of one head, each tried only where a rare piece of its text stands in the path."""

import re
from collections.abc import Mapping, Sequence, Set

from polite.robots.pattern import Pattern

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

    __slots__ = ("_by_character", "_few", "best")

    def __init__(self, ranks: list[int], patterns: Sequence[Pattern]) -> None:
        """`ranks`: in their order. `patterns`: in the same order."""
        self.best = ranks[0]
        self._few: list[tuple[int, str, Pattern]] = []
        self._by_character: dict[str, dict[str, list[tuple[int, Pattern]]]] = {}
        crowd = len(ranks) > _FEW
        for rank, pattern in zip(ranks, patterns, strict=True):
            held = needle(pattern)
            # `/$` holds nothing to look for.
            if crowd and held:
                self._keep(_key(held), rank, pattern)
            else:
                self._few.append((rank, held, pattern))

    def strongest(self, path: str, rank: int) -> int:
        """The rank of the strongest rule here that matches, when it is stronger than `rank`; else `rank`."""
        for each, held, pattern in self._few:
            if held in path:
                if each >= rank:
                    break
                if pattern.matches(path):
                    rank = each
                    break
        for character, by_key in self._by_character.items():
            if character in path:
                for key in by_key if len(by_key) <= _FEW_KEYS else _standing(by_key, path, character):
                    if key in path:
                        rank = _first(by_key[key], path, rank)
        return rank

    def _keep(self, key: str, rank: int, pattern: Pattern) -> None:
        by_key = self._by_character.setdefault(key[0], {})
        rules = by_key.get(key)
        if rules is None:
            by_key[key] = [(rank, pattern)]
        else:
            rules.append((rank, pattern))


def needle(pattern: Pattern) -> str:
    """The longest text that every path the pattern matches holds behind its head."""
    pieces = pattern.pieces
    return pieces[0] if len(pieces) == 1 else max(pieces, key=len, default="")


def _key(held: str) -> str:
    rare = _RARE(held)
    at = 0 if rare is None else rare.start()
    return held[at : at + _KEY]


def _standing(by_key: Mapping[str, object], path: str, character: str) -> Set[str]:
    """The keys that stand in the path; all of them start with the character."""
    at = path.find(character)
    stretches = set()
    while at >= 0:
        stretches.update([path[at : at + length] for length in range(1, _KEY + 1)])
        at = path.find(character, at + 1)
    return by_key.keys() & stretches


def _first(rules: list[tuple[int, Pattern]], path: str, rank: int) -> int:
    """The rank of the first of the rules that matches, when it is stronger than `rank`; else `rank`."""
    for each, pattern in rules:
        if each >= rank:
            break
        if pattern.matches(path):
            return each
    return rank
