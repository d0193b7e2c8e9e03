"""Overrides: the options that differ from origin to origin, in a tuple that is cheap to copy with one change."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from polite.origin import Origin

Options = tuple[tuple[str, float], ...]
Override = tuple[Origin, Options]


class Overrides(tuple[Override, ...]):  # noqa: SLOT001 - a tuple with slots of its own cannot be
    """Pairs of an origin and its options, each checked, and each origin once; of one that is given twice the last counts.

    A tuple, with an index. The index is shared along a chain of `put`, so that a chain of n takes no n indexes. It may hold
    origins of a later tuple: an entry counts only if the pair at its place is that origin's.
    """

    _places: dict[str, int]
    _most: Mapping[str, float] | None

    def __new__(cls, pairs: Iterable[Override] = ()) -> Self:
        own = {origin.text: (origin, options) for origin, options in pairs}
        return cls._of(own.values(), {text: place for place, text in enumerate(own)})

    @staticmethod
    def of(overrides: tuple[Override, ...]) -> "Overrides":
        """Return the same tuple if it has an index already."""
        return overrides if isinstance(overrides, Overrides) else Overrides(overrides)

    @classmethod
    def _of(cls, pairs: Iterable[Override], places: dict[str, int]) -> Self:
        made = tuple.__new__(cls, pairs)
        made._places = places
        made._most = None
        return made

    def options(self, origin: Origin) -> Options:
        """Return the options of an origin; none for one that is not named."""
        place = self._place(origin)
        return () if place is None else self[place][1]

    def put(self, origin: Origin, options: Options) -> Self:
        """Return the same with these options of an origin. Neither hashes nor checks the others again."""
        pair, place, end = (origin, options), self._place(origin), len(self)
        if place is not None:
            made = self._of((*self[:place], pair, *self[place + 1 :]), self._places)
            made._most = self._most_with(options, instead_of=self[place][1])
            return made
        places = self._places
        if len(places) != end or places.setdefault(origin.text, end) != end:
            # Something else was put to this one already, and stands in its index.
            places = {each.text: at for at, (each, _) in enumerate(self)} | {origin.text: end}
        made = self._of((*self, pair), places)
        made._most = self._most_with(options)
        return made

    def changed(self, before: "Overrides") -> set[Origin]:
        """Return the origins whose options may be others than `before`; costs little where one was made from the other."""
        pairs = [
            pair for old, new in zip(before, self, strict=False) if old is not new for pair in (old, new)
        ]
        return {origin for origin, _ in (*pairs, *before[len(self) :], *self[len(before) :])}

    def most(self, name: str) -> float:
        """Return the largest value of an option among all origins; 0 if it is named for none."""
        if self._most is None:
            self._most = _largest({}, (each for _, options in self for each in options))
        return self._most.get(name, 0.0)

    def _most_with(self, options: Options, *, instead_of: Options = ()) -> Mapping[str, float] | None:
        """The same with these options; None if all must be looked at, since a largest value may be gone."""
        most = self._most
        if most is None or any(value > 0 and value >= most.get(name, 0.0) for name, value in instead_of):
            return None
        return _largest(most, options)

    def _place(self, origin: Origin) -> int | None:
        place = self._places.get(origin.text)
        return place if place is not None and place < len(self) and self[place][0] == origin else None

    def __reduce__(self) -> tuple[Any, ...]:
        return Overrides, (tuple(self),)


def _largest(most: Mapping[str, float], options: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    largest = dict(most)
    for name, value in options:
        if value > largest.get(name, 0.0):
            largest[name] = value
    return largest
