"""Prefilter: a quick test that shows for most paths that no Disallow can match."""

from collections.abc import Iterable
from typing import NamedTuple

from polite.robots.matching.keyword_index import needle
from polite.robots.matching.pattern import Matcher, Shape, is_linear


class Prefilter(NamedTuple):
    """The literal starts and the needles of a few Disallow rules.

    A path that starts with none of `starts` and has none of `shapes` is matched by no Disallow.

    Attributes:
        starts: the literal rules.
        shapes: for each rule with wildcards a needle, which every path that it matches contains, and its shape.
        certain: whether every other path is disallowed. True if the rule set has no Allow.
    """

    starts: tuple[str, ...]
    shapes: tuple[tuple[str, Shape], ...]
    certain: bool


# Up to this many starts, one call of `startswith` is faster than the index.
MOST_RULES = 32

ALL_ALLOWED = Prefilter((), (), certain=True)
ALL_DENIED = Prefilter(("",), (), certain=True)
# Every path is left to the index: there are too many rules, or the prefilter was not built yet.
PASSES_NOTHING = Prefilter(("/",), (), certain=False)
NOT_BUILT = Prefilter(("",), (), certain=False)


def build_prefilter(disallowed: Iterable[Matcher], *, certain: bool) -> Prefilter:
    """Return the prefilter of a few Disallow rules.

    Returns PASSES_NOTHING if a path could make the search for the rules' pieces slow. The index bounds that.

    Args:
        disallowed: what the Disallow rules match.
        certain: whether the rule set has no Allow.
    """
    starts: dict[str, None] = {}
    shapes: list[tuple[str, Shape]] = []
    for each in disallowed:
        if isinstance(each, str):
            starts[each] = None
        else:
            # The longest text is the best needle: `/*?sort=` starts like every path, and the text behind the star tells more.
            held = max(needle(each), each[0], key=len)
            if not (is_linear(held) and all(map(is_linear, each[1]))):
                return PASSES_NOTHING
            shapes.append((held, each))
    return Prefilter(tuple(starts), tuple(shapes), certain)
