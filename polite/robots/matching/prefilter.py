"""Screen: a first look at a path that tells, for most, that no Disallow can match."""

from collections.abc import Iterable
from typing import NamedTuple

from polite.robots.matching.keyword_index import needle
from polite.robots.matching.pattern import Matcher, Shape, tame


class Screen(NamedTuple):
    """A path that starts with none of `starts` and is matched by none of `shapes` is matched by no Disallow.

    With each shape goes a text that what it matches holds. `certain`: any other path is disallowed, since no Allow
    can say otherwise.
    """

    starts: tuple[str, ...]
    shapes: tuple[tuple[str, Shape], ...]
    certain: bool


# One call of `startswith` tries so many starts faster than an index answers.
MOST_RULES = 32

ALL_ALLOWED = Screen((), (), certain=True)
ALL_DENIED = Screen(("",), (), certain=True)
# Nothing passes without a question to the index: there are too many rules, or nobody has looked at them yet.
IMPASSABLE = Screen(("/",), (), certain=False)
UNDECIDED = Screen(("",), (), certain=False)


def screen(disallowed: Iterable[Matcher], *, certain: bool) -> Screen:
    """The screen before a few Disallow rules. `certain`: whether there is no Allow beside them.

    IMPASSABLE if a path could be made for which looking for the rules' pieces takes too long: the index bounds that.
    """
    starts: dict[str, None] = {}
    shapes: list[tuple[str, Shape]] = []
    for each in disallowed:
        if isinstance(each, str):
            starts[each] = None
        else:
            # `/*?sort=` starts like every path, and what follows the star tells more; so it does mostly.
            held = max(needle(each), each[0], key=len)
            if not (tame(held) and all(map(tame, each[1]))):
                return IMPASSABLE
            shapes.append((held, each))
    return Screen(tuple(starts), tuple(shapes), certain)
