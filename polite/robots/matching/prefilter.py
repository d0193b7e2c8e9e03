"""Prefilter: a first look at a path that tells, for most, that no Disallow can match."""

from collections.abc import Iterable
from typing import NamedTuple

from polite.robots.matching.keyword_index import needle
from polite.robots.matching.pattern import Matcher, Shape, is_linear


class Prefilter(NamedTuple):
    """A path that starts with none of `starts` and is matched by none of `shapes` is matched by no Disallow.

    With each shape goes a text that what it matches holds. `certain`: any other path is disallowed, since no Allow
    can say otherwise.
    """

    starts: tuple[str, ...]
    shapes: tuple[tuple[str, Shape], ...]
    certain: bool


# One call of `startswith` tries so many starts faster than an index answers.
MOST_RULES = 32

ALL_ALLOWED = Prefilter((), (), certain=True)
ALL_DENIED = Prefilter(("",), (), certain=True)
# Nothing passes without a question to the index: there are too many rules, or nobody has looked at them yet.
PASSES_NOTHING = Prefilter(("/",), (), certain=False)
NOT_BUILT = Prefilter(("",), (), certain=False)


def build_prefilter(disallowed: Iterable[Matcher], *, certain: bool) -> Prefilter:
    """The build_prefilter before a few Disallow rules. `certain`: whether there is no Allow beside them.

    PASSES_NOTHING if a path could be made for which looking for the rules' pieces takes too long: the index bounds that.
    """
    starts: dict[str, None] = {}
    shapes: list[tuple[str, Shape]] = []
    for each in disallowed:
        if isinstance(each, str):
            starts[each] = None
        else:
            # `/*?sort=` starts like every path, and what follows the star tells more; so it does mostly.
            held = max(needle(each), each[0], key=len)
            if not (is_linear(held) and all(map(is_linear, each[1]))):
                return PASSES_NOTHING
            shapes.append((held, each))
    return Prefilter(tuple(starts), tuple(shapes), certain)
