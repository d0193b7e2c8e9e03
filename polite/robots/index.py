"""Index: which rule of many is the strongest that matches a path, found without trying them one by one."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from polite.robots.pattern import Grammar
from polite.robots.thicket import FEW, Thicket

_NOWHERE = -1


class Index:
    """The rules of one set by their literal heads (docs/explanation/matching.md).

    The heads are sorted, so a path's longest head stands right before the path, or is an ancestor of what does: of the heads
    that start a text, each starts the next longer one, its child. With each head goes the strongest rank among the literal
    rules at it and at its ancestors, and the nearest of these that has wildcard rules.
    """

    _thickets: dict[int, Thicket | tuple[str, tuple[int, ...]]]

    __slots__ = ("_grammar", "_heads", "_parents", "_ranks", "_texts", "_thickets", "_wild", "none")

    def __init__(self, texts: Sequence[str], grammar: Grammar) -> None:
        """`texts`: normal forms, the strongest rule's first; its place is its rank. `none`: the rank of no rule."""
        self.none = len(texts)
        self._texts = texts
        self._grammar = grammar
        # By head: the strongest literal rule, and all rules with wildcards. Every path starts with the root, which is empty.
        literal: dict[str, int] = {}
        wild: dict[str, list[int]] = {}
        has_wildcards = grammar.has_wildcards
        for rank, text in enumerate(texts):
            head, star, tail = text.partition("*") if has_wildcards else (text, "", "")
            if "%2" in head:
                head = grammar.plain(head)
            if (star and tail not in ("", "$")) or (has_wildcards and not star and text[-1:] == "$"):
                head = head if star else head[:-1]
                if head in wild:
                    wild[head].append(rank)
                else:
                    wild[head] = [rank]
            else:
                literal.setdefault(head, rank)
        self._thickets = {}
        self._grow(literal, wild)

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
            if isinstance(thicket, tuple):
                thicket = self._thickets[at] = Thicket(*thicket, self._texts, self._grammar)
            if thicket.best < rank:
                rank = thicket.strongest(path, rank)
            at = self._wild[self._parents[at]] if at else _NOWHERE
        return rank

    def _grow(self, literal: dict[str, int], wild: Mapping[str, list[int]]) -> None:
        """Hand down to each head what its ancestors know; a parent stands before its children."""
        for head in ("", *wild):
            literal.setdefault(head, self.none)
        # The garbage collector visits what a list holds, again and again, and the loop waits for it; of a tuple of texts
        # it learns once that there is nothing to see.
        self._heads = heads = tuple(sorted(literal))
        parents: list[int] = []
        ranks: list[int] = []
        wilds: list[int] = []
        nearest = _NOWHERE
        ancestors = [0]
        for at, head in enumerate(heads):
            while not head.startswith(heads[ancestors[-1]]):
                ancestors.pop()
            parent = ancestors[-1]
            rank = literal[head]
            if at:
                rank = min(rank, ranks[parent])
                nearest = wilds[parent]
                ancestors.append(at)
            if head in wild:
                nearest = at
                self._plant(at, head, wild[head])
            parents.append(parent)
            ranks.append(rank)
            wilds.append(nearest)
        self._parents = array("i", parents)
        self._ranks = array("i", ranks)
        self._wild = array("i", wilds if wild else ())

    def _plant(self, at: int, head: str, ranks: list[int]) -> None:
        """A thicket of few rules is made when it is first needed: a file may have a head for each rule."""
        many = len(ranks) > FEW
        self._thickets[at] = (
            Thicket(head, ranks, self._texts, self._grammar) if many else (head, tuple(ranks))
        )
