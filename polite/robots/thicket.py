"""Thicket: the wildcard rules of one head, each tried only where a rare piece of its text stands in the path."""

import re
from collections.abc import Iterable, Mapping, Sequence
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


# Rules of more pieces than this are walked through a table of the path, when a file has so many of them that it must be
# hostile: a step takes a third of the time of a search.
_MANY_PIECES = 8
_MANY_RULES = 200
# The table of a longer path would take longer to make than it saves; it knows texts of so many octets and less.
_LONGEST_TABLED = 256
_TABLED = 3
# Of longer texts so many are searched for through the table, which is slower than without.
_MOST_SEARCHED = 2_000


class _Hence(dict[str, "_Hence | None"]):
    """From one place in a path: for each short text that follows, the place behind it where it stands first."""

    __slots__ = ("_places", "at")

    def __init__(self, known: "Mapping[str, _Hence | None]", places: "_Places", at: int) -> None:
        super().__init__(known)
        self._places = places
        self.at = at

    def __missing__(self, piece: str) -> "_Hence | None":
        return None if len(piece) <= _TABLED else self._places.searched(piece, self.at)


class _Places:
    """The table of one path, for one question. `searches` left before it costs more than it saves."""

    def __init__(self, path: str) -> None:
        self.searches = _MOST_SEARCHED
        self._path = path
        self._hence: list[_Hence] = []
        behind: dict[str, _Hence | None] = {}
        made: list[_Hence] = []
        # From the end, so that what stands first is written last.
        for at in range(len(path), -1, -1):
            here = _Hence(behind, self, at)
            for length in range(1, min(_TABLED, len(path) - at) + 1):
                here[path[at : at + length]] = made[-length]
            made.append(here)
            behind = here
        self._hence = made[::-1]

    def behind(self, head: str) -> _Hence:
        return self._hence[len(head)]

    def searched(self, piece: str, start: int) -> _Hence | None:
        self.searches -= 1
        at = self._path.find(piece, start)
        return None if at < 0 else self._hence[at + len(piece)]


class Thicket:
    """The rules of one head by their ranks: a rank is a place in the order of precedence, 0 the strongest.

    Each rule is kept under a key, a few octets that every path it matches holds. The keys are kept by their first
    character, so that one glance at a path leaves out all whose character is not in it. `best`: the strongest rank here.
    """

    __slots__ = ("_by_character", "_few", "_lengths", "_shapes", "_starry", "best")

    def __init__(self, ranks: list[int], shapes: Mapping[int, Shape] | Sequence[Shape]) -> None:
        """`ranks`: in their order. `shapes`: by rank; may hold those of other heads too."""
        self.best = ranks[0]
        self._shapes = shapes
        few: list[tuple[int, str, Shape]] = []
        by_key: dict[str, int | list[int]] = {}
        crowd = len(ranks) > _FEW
        starry = 0
        for rank in ranks:
            shape = shapes[rank]
            held = max(shape[1], key=len, default="")
            # `/$` holds nothing to look for.
            if crowd and held:
                starry += len(shape[1]) > _MANY_PIECES
                key = held if len(held) <= _KEY else _key(held)
                kept = by_key.get(key)
                if kept is None:
                    by_key[key] = rank  # most keys have one rule, which needs no list
                elif isinstance(kept, int):
                    by_key[key] = [kept, rank]
                else:
                    kept.append(rank)
            else:
                few.append((rank, held, shape))
        self._few = tuple(few)
        self._starry = starry > _MANY_RULES
        self._by_character: dict[str, dict[str, int | tuple[int, ...]]] = {}
        self._lengths = set(map(len, by_key))
        self._keep(by_key.items())

    def strongest(self, path: str, rank: int) -> int:
        """The rank of the strongest rule here that matches, when it is stronger than `rank`; else `rank`."""
        for each, held, shape in self._few:
            if held in path:
                if each >= rank:
                    break
                if fits(shape, path):
                    rank = each
                    break
        places = _Places(path) if self._starry and len(path) <= _LONGEST_TABLED else None
        for character, by_key in self._by_character.items():
            if character in path:
                for key in by_key if len(by_key) <= _FEW_KEYS else self._standing(by_key, path):
                    if key in path:
                        rank = self._first(by_key[key], path, rank, places)
        return rank

    def _first(self, kept: int | tuple[int, ...], path: str, rank: int, places: _Places | None) -> int:
        """The first of the ranks whose rule matches, when it is stronger than `rank`; else `rank`."""
        shapes, find = self._shapes, path.find
        for each in (kept,) if isinstance(kept, int) else kept:
            if each >= rank:
                break
            shape = shapes[each]
            if places is not None and len(shape[1]) > _MANY_PIECES and places.searches > 0:
                if _walks(shape, path, places) and fits(shape, path):
                    return each
                continue
            # Nearly all fail here, and fail sooner than a call would take: a file may hold thousands under one key.
            at = 0
            for piece in shape[1]:
                at = find(piece, at) + 1
                if not at:
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

    def _keep(self, by_key: Iterable[tuple[str, int | list[int]]]) -> None:
        for key, ranks in by_key:
            kept = ranks if isinstance(ranks, int) else tuple(ranks)
            if key[0] in self._by_character:
                self._by_character[key[0]][key] = kept
            else:
                self._by_character[key[0]] = {key: kept}


def _walks(shape: Shape, path: str, places: _Places) -> bool:
    """Whether the pieces follow each other; all that fits a path that starts with the head does."""
    head, pieces, anchored = shape
    if anchored and not path.endswith(pieces[-1]):
        return False
    place: _Hence | None = places.behind(head)
    for piece in pieces:
        if place is None:
            return False
        place = place[piece]
    return place is not None


def needle(shape: Shape) -> str:
    """The longest text that every path of that shape holds behind its head."""
    pieces = shape[1]
    return pieces[0] if len(pieces) == 1 else max(pieces, key=len, default="")


def _key(held: str) -> str:
    rare = _RARE(held)
    at = 0 if rare is None else max(0, min(rare.start(), len(held) - _KEY))
    return held[at : at + _KEY]
