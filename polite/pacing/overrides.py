"""Options that differ between origins, in a tuple that is cheap to copy with one change."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from polite.origin import Origin

Options = tuple[tuple[str, Any], ...]
Override = tuple[Origin, Options]
"""An origin, and the options that differ there, each with its name. Made by `PacingPolicy.override`."""


class Overrides(tuple[Override, ...]):  # noqa: SLOT001 - a tuple with slots of its own cannot be
    """Pairs of an origin and its options, which are checked already. Each origin occurs once: the last pair counts.

    An index is shared by all tuples of a chain of `put`, so that a chain of n needs no n indexes. It may hold origins of a later
    tuple: an entry counts only if the pair at its position is that origin's.
    """

    positions_by_origin: dict[str, int]
    largest_values: Mapping[str, float] | None

    def __new__(cls, pairs: Iterable[Override] = ()) -> Self:
        own = {origin.text: (origin, options) for origin, options in pairs}
        return cls._of(own.values(), {text: position for position, text in enumerate(own)})

    @staticmethod
    def of(overrides: tuple[Override, ...]) -> "Overrides":
        """Return the same tuple if it has an index already."""
        return overrides if isinstance(overrides, Overrides) else Overrides(overrides)

    @classmethod
    def _of(cls, pairs: Iterable[Override], positions: dict[str, int]) -> Self:
        made = tuple.__new__(cls, pairs)
        made.positions_by_origin = positions
        made.largest_values = None
        return made

    def options(self, origin: Origin) -> Options:
        """Return the options of an origin; () without an override."""
        position = self._position(origin)
        return () if position is None else self[position][1]

    def put(self, origin: Origin, options: Options) -> Self:
        """Return a copy with these options for an origin. The other pairs are neither hashed nor checked again."""
        pair, position, end = (origin, options), self._position(origin), len(self)
        if position is not None:
            made = self._of((*self[:position], pair, *self[position + 1 :]), self.positions_by_origin)
            made.largest_values = self._most_with(options, instead_of=self[position][1])
            return made
        positions = self.positions_by_origin
        if len(positions) != end or positions.setdefault(origin.text, end) != end:
            # Another origin was put to this tuple already, and is in its index.
            positions = {each.text: at for at, (each, _) in enumerate(self)} | {origin.text: end}
        made = self._of((*self, pair), positions)
        made.largest_values = self._most_with(options)
        return made

    def changed(self, before: "Overrides") -> set[Origin]:
        """Return the origins whose options may differ from `before`. Cheap if one was made from the other."""
        pairs = [
            pair for old, new in zip(before, self, strict=False) if old is not new for pair in (old, new)
        ]
        return {origin for origin, _ in (*pairs, *before[len(self) :], *self[len(before) :])}

    def most(self, name: str) -> float:
        """Return the largest value of an option among all origins, or 0. For one that is no number: 1 if any origin has it."""
        if self.largest_values is None:
            self.largest_values = _largest({}, (each for _, options in self for each in options))
        return self.largest_values.get(name, 0.0)

    def _most_with(self, options: Options, *, instead_of: Options = ()) -> Mapping[str, float] | None:
        """Return the largest values with these options too; None if a largest value may be gone, so that all must be visited."""
        most = self.largest_values
        if most is None or any(0 < _size(value) >= most.get(name, 0.0) for name, value in instead_of):
            return None
        return _largest(most, options)

    def _position(self, origin: Origin) -> int | None:
        position = self.positions_by_origin.get(origin.text)
        return (
            position
            if position is not None and position < len(self) and self[position][0] == origin
            else None
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Overrides, (tuple(self),)


def _largest(most: Mapping[str, float], options: Iterable[tuple[str, float]]) -> Mapping[str, float]:
    largest = dict(most)
    for name, value in options:
        if _size(value) > largest.get(name, 0.0):
            largest[name] = _size(value)
    return largest


def _size(value: object) -> float:
    return value if isinstance(value, int | float) else 1.0
