"""Index: which rule of many is the strongest that matches a path, found without trying them one by one."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from polite.robots.pattern import Matcher, Shape
from polite.robots.thicket import Thicket

_NOWHERE = -1
# Stands for a literal rule among the shapes; nobody asks for it.
_NO_SHAPE: Shape = ("", (), False)


class Index:
    """The rules of one set by their literal heads (docs/explanation/matching.md).

    The heads are sorted, so a path's longest head stands right before the path, or is an ancestor of what does: of the heads
    that start a text, each starts the next longer one, its child. With each head goes the strongest rank among the literal
    rules at it and at its ancestors, and the nearest of these that has wildcard rules.
    """

    __slots__ = ("_heads", "_parents", "_ranks", "_thickets", "_wild", "none")

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        """`matchers`: one for each rule, the strongest rule first; its place is its rank. `none`: the rank of no rule."""
        self.none = len(matchers)
        literal: dict[str, int] = {"/": self.none}
        wild: dict[str, list[int]] = {}
        shapes: list[Shape] = []
        for rank, matcher in enumerate(matchers):
            # A path starts with a slash: a head that is empty starts it too, and any other never does.
            if isinstance(matcher, tuple):
                shapes.append(matcher)
                head = matcher[0] or "/"
                if head in wild:
                    wild[head].append(rank)
                elif head[0] == "/":
                    wild[head] = [rank]
                    literal.setdefault(head, self.none)
            else:
                shapes.append(_NO_SHAPE)
                head = matcher or "/"
                if head[0] == "/":
                    literal[head] = min(rank, literal.get(head, rank))
        # The garbage collector visits what a list holds, again and again, and the loop waits for it; of a tuple of texts
        # it learns once that there is nothing to see.
        self._heads = tuple(sorted(literal))
        self._parents = array("i", _parents(self._heads))
        self._ranks = array("i", [literal[head] for head in self._heads])
        self._wild = array("i", [_NOWHERE]) * len(self._heads) if wild else array("i")
        self._thickets: dict[int, Thicket] = {}
        by_rank = tuple(shapes)
        self._fold({head: Thicket(ranks, by_rank) for head, ranks in wild.items()})

    def strongest(self, path: str, *, any_will_do: bool = False) -> int:
        """The rank of the strongest rule that matches a path in normal form, or `none`; or of any that does."""
        heads = self._heads
        at = bisect_right(heads, path) - 1
        while not path.startswith(heads[at]):
            at = self._parents[at]
        rank = self._ranks[at]
        if not self._wild or (any_will_do and rank != self.none):
            return rank
        at = self._wild[at]
        while at >= 0:
            thicket = self._thickets[at]
            if thicket.best < rank:
                rank = thicket.strongest(path, rank)
            at = self._wild[self._parents[at]] if at else _NOWHERE
        return rank

    def _fold(self, wild: Mapping[str, Thicket]) -> None:
        """Hand down to each head what its ancestors know; a parent stands before its children."""
        for at, (head, parent) in enumerate(zip(self._heads, self._parents, strict=True)):
            if self._ranks[parent] < self._ranks[at]:
                self._ranks[at] = self._ranks[parent]
            if head in wild:
                self._thickets[at] = wild[head]
                self._wild[at] = at
            elif wild:
                self._wild[at] = self._wild[parent]


def _parents(heads: Sequence[str]) -> list[int]:
    """For each of the sorted heads, of which "/" is the first and starts all, the longest other one that starts it."""
    parents: list[int] = []
    open_: list[int] = [0]
    for at, head in enumerate(heads):
        while not head.startswith(heads[open_[-1]]):
            open_.pop()
        parents.append(open_[-1])
        if at:
            open_.append(at)
    return parents
