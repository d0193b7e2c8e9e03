"""RuleIndex: finds the strongest of many rules that matches a path, without trying each."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import repeat

from polite.robots.matching.compact import compact
from polite.robots.matching.keyword_index import FEW, STEPS_OF_A_RULE, KeywordIndex
from polite.robots.matching.pattern import Grammar
from polite.robots.switching import let_threads_switch

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
        self._link(literal, wild)
        for at, ranks in self._indexes.items():
            if isinstance(ranks, list) and len(ranks) > FEW:
                self._indexes[at] = KeywordIndex(self._heads[at], ranks, texts, grammar, tails)
        let_threads_switch()
        if not wild:
            self._texts = ()
        self.steps: int = sum(map(_steps, self._indexes.values()))

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
        first `*`.
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
        for rank, text in enumerate(self._texts):
            if not rank % _AT_A_TIME:
                let_threads_switch()
            head, wildcard, tail = text.partition(star)
            tails.append(tail)
            if not wildcard and has_wildcards and head[-1:] == "$":
                head, wildcard = head[:-1], "$"
            elif tail == "" or tail == "$":
                wildcard = ""  # a last `*` has no effect
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
        """Find each head's parent, and give each head what its ancestors know. Parents come first."""
        # A tuple: the garbage collector does not track tuples of texts, but visits the items of a list in each
        # collection, and the event loop waits for it.
        self._heads = heads = tuple(sorted(dict.fromkeys(("", *literal, *wild))))
        let_threads_switch()
        # The root is its own parent.
        parents = [0] * len(heads)
        ranks = list(map(literal.get, heads, repeat(self.none)))
        wilds = [at if head in wild else _NOWHERE for at, head in enumerate(heads)] if wild else []
        self._indexes.update((at, wild[heads[at]]) for at in wilds if at >= 0)
        let_threads_switch()
        # Whether the next head starts with this one. Most heads start no other.
        is_parent = [*map(str.startswith, heads[1:], heads), False]
        ancestors: list[int] = []
        parent, start = 0, ""
        for at, head in enumerate(heads):
            if not at % _AT_A_TIME:
                let_threads_switch()
            while not head.startswith(start):
                parent = ancestors.pop()
                start = heads[parent]
            if ranks[parent] < ranks[at]:
                ranks[at] = ranks[parent]
            parents[at] = parent
            if wilds and wilds[at] < 0:
                wilds[at] = wilds[parent]
            if is_parent[at]:
                ancestors.append(parent)
                parent, start = at, head
        self._parents = compact(parents)
        self._ranks = compact(ranks)
        self._wild = compact(wilds)


def _steps(kept: KeywordIndex | _Ranks) -> int:
    if isinstance(kept, KeywordIndex):
        return kept.steps
    return STEPS_OF_A_RULE * (1 if isinstance(kept, int) else len(kept))
