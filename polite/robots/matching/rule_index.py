"""RuleIndex: finds the strongest of many rules that matches a path, without trying each."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import compress, repeat

from polite.robots.dialect import let_threads_switch
from polite.robots.matching.keyword_index import FEW, STEPS_OF_A_RULE, KeywordIndex
from polite.robots.matching.pattern import Grammar


def compact(numbers: list[int]) -> Sequence[int]:
    """Return the same integers, each of which needs at most 32 bits, in one to four octets each.

    Most files have few rules, and their numbers fit into bytes, which are read as fast as a list.
    """
    # Hot path: to try costs less than to look for the least and the largest.
    try:
        return bytes(numbers)
    except ValueError:
        pass
    try:
        return array("h", numbers)
    except OverflowError:
        return array("i", numbers)


_NOWHERE = -1
# Rules in small keyword indexes that are cached once made. One rule takes up to 1.5 kB, and a hostile file has a head for each
# of its rules.
MAX_CACHED_RULES = 1_000
# Rules that are indexed between two moments at which threads may switch.
_AT_A_TIME = 1_024
# The ranks of one head's wildcard rules. Most heads have one rule, which needs no list.
_Ranks = int | list[int]


class RuleIndex:
    """The rules of one rule set by their literal heads (docs/explanation/matching.md).

    A head is the literal text before a rule's first `*`. The heads are sorted. The longest head that starts a path is
    the one right before the path in this order, or an ancestor of it: a head's parent is the longest other head that it
    starts with. The root is the empty head. Each head stores the strongest literal rank among itself and its ancestors,
    and the nearest of these that has wildcard rules.

    Attributes:
        none: the rank that stands for "no rule".
        steps: the upper bound of octets compared for each octet of a path.
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
        """Build the index.

        Args:
            texts: normal forms, the strongest rule first. A rule's position is its rank.
            grammar: how the dialect reads paths.
        """
        self.none: int = len(texts)
        # Needed for rules with wildcards only.
        self._texts: Sequence[str] = texts
        self._grammar = grammar
        # A keyword index of few rules is made when first needed; until then its ranks are stored.
        self._indexes: dict[int, KeywordIndex | _Ranks] = {}
        self._cacheable = MAX_CACHED_RULES
        literal, wild, tails = self._by_head()
        self._link(literal, wild, are_heads=not tails)
        self.steps: int = STEPS_OF_A_RULE * len(wild)
        for head, ranks in wild.items():
            if isinstance(ranks, list):
                self.steps += self._add_several(head, ranks, tails)
        let_threads_switch()
        if not wild:
            self._texts = ()

    def strongest(self, path: str, *, any_will_do: bool = False) -> int:
        """Return the strongest rank that matches a path in normal form, or `none`.

        Args:
            path: the path in normal form.
            any_will_do: whether any matching rank may be returned.
        """
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
            if not at:
                break
            let_threads_switch()
            at = self._wild[self._parents[at]]
        return rank

    def _by_head(self) -> tuple[dict[str, int], dict[str, _Ranks], list[str]]:
        """Group the rules by head.

        Returns the strongest literal rule of each head, all wildcard rules of each head, and by rank the text behind the
        first `*`. There are no such texts if each rule is its own head.
        """
        literal: dict[str, int] = {}
        wild: dict[str, _Ranks] = {}
        tails: list[str] = []
        grammar, has_wildcards = self._grammar, self._grammar.has_wildcards
        together = "\n".join(self._texts)
        escapes = grammar.plain_specials and "%2" in together
        if not escapes and not (has_wildcards and ("*" in together or "$" in together)):
            return dict(zip(self._texts, range(len(self._texts)), strict=True)), wild, tails
        star = "*" if has_wildcards else "\n"  # LF is in no rule
        anchors = has_wildcards and "$" in together
        place = wild.setdefault
        for start in range(0, len(self._texts), _AT_A_TIME):
            let_threads_switch()
            # Hot path: `map` takes less time than a call for each rule.
            parts = list(map(str.partition, self._texts[start : start + _AT_A_TIME], repeat(star)))
            tails += [tail for _, _, tail in parts]
            for rank, (before, wildcard, tail) in enumerate(parts, start):
                head = before
                # A last `*` has no effect.
                is_wild = wildcard != "" and tail != "" and tail != "$"
                if not wildcard and anchors and before[-1:] == "$":
                    head, is_wild = before[:-1], True
                if escapes and "%2" in head:
                    head = grammar.plain(head)
                if not is_wild:
                    literal.setdefault(head, rank)
                    continue
                kept = place(head, rank)
                if isinstance(kept, list):
                    kept.append(rank)
                elif kept != rank:
                    wild[head] = [kept, rank]
        return literal, wild, tails

    def _add_several(self, head: str, ranks: list[int], tails: Sequence[str]) -> int:
        """Index the rules of a head that has many. Return the steps that its rules take beside those of one rule."""
        if len(ranks) <= FEW:
            return STEPS_OF_A_RULE * (len(ranks) - 1)
        index = KeywordIndex(head, ranks, self._texts, self._grammar, tails)
        self._indexes[bisect_left(self._heads, head)] = index
        return index.steps - STEPS_OF_A_RULE

    def _link(self, literal: Mapping[str, int], wild: Mapping[str, _Ranks], *, are_heads: bool) -> None:
        """Find each head's parent, and give each head what its ancestors know. Parents come first.

        Args:
            literal: the strongest literal rule of each head.
            wild: all wildcard rules of each head.
            are_heads: whether each rule is its own head. Then it is longer, hence stronger, than its ancestors.
        """
        # A tuple: the garbage collector does not track tuples of texts, but visits the items of a list in each
        # collection, and the event loop waits for it.
        self._heads = heads = (
            ("", *sorted(literal)) if are_heads else tuple(sorted(dict.fromkeys(("", *literal, *wild))))
        )
        let_threads_switch()
        # Whether the next head starts with this one. Most heads start no other.
        is_parent = [*map(str.startswith, heads[1:], heads), False]
        let_threads_switch()
        parents = _parents(heads, is_parent)
        let_threads_switch()
        inner = list(compress(range(1, len(heads)), is_parent[1:]))
        ranks = list(map(literal.get, heads, repeat(self.none))) if literal else [self.none] * len(heads)
        if literal and not are_heads:
            for at in inner:
                ranks[at] = min(ranks[at], ranks[parents[at]])
            ranks = list(map(min, ranks, map(ranks.__getitem__, parents)))
        let_threads_switch()
        wilds: list[int] = []
        if wild:
            found = list(map(wild.get, heads))
            self._indexes = {at: kept for at, kept in enumerate(found) if kept is not None}
            wilds = [_NOWHERE if kept is None else at for at, kept in enumerate(found)]
            let_threads_switch()
            if None in found[1:]:
                for at in inner:
                    if wilds[at] < 0:
                        wilds[at] = wilds[parents[at]]
                wilds = [at if at >= 0 else wilds[parent] for at, parent in zip(wilds, parents, strict=True)]
        let_threads_switch()
        self._parents = compact(parents)
        self._ranks = compact(ranks)
        self._wild = compact(wilds)


def _parents(heads: Sequence[str], is_parent: Sequence[bool]) -> list[int]:
    """Return each head's parent. The root is its own.

    Args:
        heads: the heads, sorted, the root first.
        is_parent: for each head, whether it is the parent of the next one.
    """
    parents: list[int] = []
    ancestors: list[int] = []
    parent, start = 0, ""
    for at, head in enumerate(heads):
        while not head.startswith(start):
            parent = ancestors.pop()
            start = heads[parent]
        parents.append(parent)
        if is_parent[at]:
            ancestors.append(parent)
            parent, start = at, head
    return parents
