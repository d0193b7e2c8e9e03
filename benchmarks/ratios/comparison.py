"""Ratios beside those of the last release: which of them fell too far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# A ratio may lose this share of its recorded value before it counts as fallen.
MOST_FALL = 0.10


@dataclass(frozen=True, slots=True)
class Change:
    """One ratio, then and now. `before` is None for a new one, `now` for one that is no longer measured."""

    name: str
    before: float | None
    now: float | None

    @property
    def limit(self) -> float | None:
        """The smallest value that is no failure."""
        return None if self.before is None else self.before * (1 - MOST_FALL)

    @property
    def failed(self) -> bool:
        # What is no number is not compared as less.
        return self.limit is not None and (self.now is None or not self.now >= self.limit)

    def __str__(self) -> str:
        if self.before is None:
            return f"{'new':9} {self.name:24} {self.now:9.3f}"
        if self.now is None:
            return f"{'MISSING':9} {self.name:24} {'-':>9}   was {self.before:.3f}: it is no longer measured"
        word = "FELL" if self.failed else "ok"
        change = self.now / self.before - 1
        return f"{word:9} {self.name:24} {self.now:9.3f}   was {self.before:.3f} ({change:+.1%}), limit {self.limit:.3f}"


def changes(before: Mapping[str, float], now: Mapping[str, float]) -> list[Change]:
    """Return every ratio of either side, in the order of `before`, new ones last."""
    names = [*before, *(name for name in now if name not in before)]
    return [Change(name, before.get(name), now.get(name)) for name in names]


def fallen(found: Iterable[Change]) -> list[str]:
    """Return the names of the ratios that fell too far and were measured."""
    return [each.name for each in found if each.failed and each.now is not None]
