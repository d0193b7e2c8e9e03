"""Thicket: the wildcard rules of one head, each tried only where a rare piece of its text stands in the path."""

import re
from collections import Counter
from collections.abc import Mapping, Set

from polite.robots.pattern import Pattern

# A rule's rank: its place in the order of precedence, 0 being the strongest. Two rules never share one.
Ranked = tuple[int, Pattern]

# Up to so many rules are quicker tried than looked up.
_FEW = 24
# Up to so many keys are each looked for in the path; of more, what the path holds is looked for among them.
_FEW_KEYS = 12
# Octets of a key: longer ones tell more rules apart, shorter ones are found in more rules.
_KEY = 4
# So many pieces of a rule are looked at to find its rarest key. A rule of more is a hostile one.
_PIECES = 4
# What is rare in paths, rarest first: a key starts where the first of these is found.
_RARE = tuple(re.compile(f"[{inside}]").search for inside in (r"^A-Za-z0-9/._\-", "^a-z/.", ".jkqvwxyz"))


class Thicket:
    """The ranked rules of one head. `best` is the strongest rank among them.

    Each rule is kept under a key, a few octets that every path it matches holds. The keys are kept by their first
    character, so that one glance at a path leaves out all whose character is not in it.
    """

    __slots__ = ("_by_character", "_few", "best")

    def __init__(self, rules: list[Ranked]) -> None:
        """`rules`: in the order of their ranks; none is literal."""
        self.best = rules[0][0]
        self._few: list[tuple[int, str, Pattern]] = []
        self._by_character: dict[str, dict[str, list[Ranked]]] = {}
        if len(rules) <= _FEW:
            self._few = [(rank, needle(pattern), pattern) for rank, pattern in rules]
        else:
            self._sort_by_keys(rules)

    def strongest(self, path: str, rank: int) -> int:
        """The rank of the strongest rule here that matches, when it is stronger than `rank`; else `rank`."""
        for each, held, pattern in self._few:
            if held in path:
                if each >= rank:
                    break
                if pattern.matches(path):
                    rank = each
                    break
        return self._looked_up(path, rank) if self._by_character else rank

    def _looked_up(self, path: str, rank: int) -> int:
        for character, by_key in self._by_character.items():
            if character in path:
                for key in by_key if len(by_key) <= _FEW_KEYS else _standing(by_key, path, character):
                    if key in path:
                        rank = _first(by_key[key], path, rank)
        return rank

    def _sort_by_keys(self, rules: list[Ranked]) -> None:
        keys = [_keys(pattern.pieces) for _, pattern in rules]
        counts = Counter(key for each in keys for key in each)
        for ranked, candidates in zip(rules, keys, strict=True):
            if not candidates:
                self._few.append((ranked[0], "", ranked[1]))  # `/$`, which holds nothing to look for
                continue
            key = candidates[0] if len(candidates) == 1 else min(candidates, key=counts.__getitem__)
            self._by_character.setdefault(key[0], {}).setdefault(key, []).append(ranked)


def needle(pattern: Pattern) -> str:
    """The longest text that every path the pattern matches holds."""
    return max(pattern.pieces, key=len, default="")


def _keys(pieces: list[str]) -> list[str]:
    """For each piece its rarest octets, as they may be guessed."""
    return [_key(piece) for piece in pieces[:_PIECES]]


def _key(piece: str) -> str:
    for search in _RARE:
        if (rare := search(piece)) is not None:
            at = rare.start()
            return piece[at : at + _KEY]
    return piece[:_KEY]


def _standing(by_key: Mapping[str, object], path: str, character: str) -> Set[str]:
    """The keys that stand in the path; all of them start with the character."""
    at = path.find(character)
    stretches = set()
    while at >= 0:
        stretches.update([path[at : at + length] for length in range(1, _KEY + 1)])
        at = path.find(character, at + 1)
    return by_key.keys() & stretches


def _first(rules: list[Ranked], path: str, rank: int) -> int:
    """The rank of the first of the rules that matches, when it is stronger than `rank`; else `rank`."""
    for each, pattern in rules:
        if each >= rank:
            break
        if pattern.matches(path):
            return each
    return rank
