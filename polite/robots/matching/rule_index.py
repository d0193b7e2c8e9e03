"""RuleIndex: which rule of many is the strongest that matches a path, found without trying them one by one."""

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from polite.robots.matching.keyword_index import FEW, STEPS_OF_A_RULE, KeywordIndex
from polite.robots.matching.pattern import Grammar

_NOWHERE = -1
# Rules of indexes of few that are kept once made: one takes up to 1.5 kB, and a hostile file has a head for each of its rules.
MAX_CACHED_RULES = 1_000
# The ranks of one head's rules with wildcards; most heads have one, which needs no list.
_Ranks = int | list[int]


class RuleIndex:
    """The rules of one set by their literal heads (docs/explanation/matching.md).

    The heads are sorted, so a path's longest head stands right before the path, or is an ancestor of what does: of the heads
    that start a text, each starts the next longer one, its child. The root is empty and starts all. With each head goes the
    strongest rank among the literal rules at it and at its ancestors, and the nearest of these that has wildcard rules.
    """

    __slots__ = (
        "_cacheable",
        "_grammar",
        "_heads",
        "_indexes",
        "_parents",
        "_ranks",
        "_texts",
        "_wild",
        "none",
        "steps",
    )

    def __init__(self, texts: Sequence[str], grammar: Grammar) -> None:
        """`texts`: normal forms, the strongest rule's first; its place is its rank. `none`: the rank of no rule.

        `steps`: what each octet of a path takes at most, in octets compared, whatever it holds.
        """
        self.none = len(texts)
        self._texts = texts
        self._grammar = grammar
        # A index of few rules is only their ranks until it is needed: a file may have a head for each rule.
        self._indexes: dict[int, KeywordIndex | _Ranks] = {}
        self._cacheable = MAX_CACHED_RULES
        literal, wild, tails = self._by_head()
        self._link(literal, wild)
        for at, ranks in self._indexes.items():
            if isinstance(ranks, list) and len(ranks) > FEW:
                self._indexes[at] = KeywordIndex(self._heads[at], ranks, texts, grammar, tails)
        self.steps = sum(map(_steps, self._indexes.values()))

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
            index = self._indexes[at]
            if not isinstance(index, KeywordIndex):
                ranks = (index,) if isinstance(index, int) else index
                index = KeywordIndex(heads[at], ranks, self._texts, self._grammar)
                if self._cacheable > 0:
                    self._cacheable -= len(ranks)
                    self._indexes[at] = index
            if index.best < rank:
                rank = index.strongest(path, rank)
            at = self._wild[self._parents[at]] if at else _NOWHERE
        return rank

    def _by_head(self) -> tuple[dict[str, int], dict[str, _Ranks], list[str]]:
        """By head the strongest literal rule, and all rules with wildcards; and what each rule has behind its first `*`."""
        literal: dict[str, int] = {}
        wild: dict[str, _Ranks] = {}
        tails: list[str] = []
        grammar, has_wildcards = self._grammar, self._grammar.has_wildcards
        escapes = grammar.plain_specials and "%2" in "".join(self._texts)
        star = "*" if has_wildcards else "\n"  # which stands in no rule
        for rank, text in enumerate(self._texts):
            head, wildcard, tail = text.partition(star)
            tails.append(tail)
            if not wildcard and has_wildcards and head[-1:] == "$":
                head, wildcard = head[:-1], "$"
            elif tail == "" or tail == "$":
                wildcard = ""  # behind it comes anything
            if escapes and "%2" in head:
                head = grammar.plain(head)
            if not wildcard:
                literal.setdefault(head, rank)
                continue
            kept = wild.get(head)
            if kept is None:
                wild[head] = rank
            elif isinstance(kept, int):
                wild[head] = [kept, rank]
            else:
                kept.append(rank)
        return literal, wild, tails

    def _link(self, literal: Mapping[str, int], wild: Mapping[str, _Ranks]) -> None:
        """Hand down to each head what its ancestors know; a parent stands before its children."""
        # The garbage collector visits what a list holds, again and again, and the loop waits for it; of a tuple of texts
        # it learns once that there is nothing to see.
        self._heads = heads = tuple(sorted(dict.fromkeys(("", *literal, *wild))))
        none, indexes = self.none, self._indexes
        # The root has no parent but itself.
        parents, ranks, wilds = [0], [literal.get("", none)], [_NOWHERE]
        if "" in wild:
            wilds[0], indexes[0] = 0, wild[""]
        ancestors = [0]
        parent, start = 0, ""
        for at, head in enumerate(heads[1:], 1):
            while not head.startswith(start):
                ancestors.pop()
                parent = ancestors[-1]
                start = heads[parent]
            parents.append(parent)
            rank, upper = literal.get(head, none), ranks[parent]
            ranks.append(min(upper, rank))
            if head in wild:
                wilds.append(at)
                indexes[at] = wild[head]
            else:
                wilds.append(wilds[parent])
            ancestors.append(at)
            parent, start = at, head
        self._parents = array("i", parents)
        self._ranks = array("i", ranks)
        self._wild = array("i", wilds if wild else ())


def _steps(kept: KeywordIndex | _Ranks) -> int:
    """What the rules of one head take for each octet of a path, at most."""
    if isinstance(kept, KeywordIndex):
        return kept.steps
    return STEPS_OF_A_RULE * (1 if isinstance(kept, int) else len(kept))
