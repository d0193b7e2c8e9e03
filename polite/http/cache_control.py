"""Cache-Control (RFC 9111, 5.2.2) and Age (5.1) of a response."""

import re
from functools import lru_cache
from typing import NamedTuple

# Characters that are read. The relevant directives come early in any honest header.
_LONGEST = 4096
# A crawl meets few values that are not longer than this.
_USUAL = 256
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,18})\"?", re.ASCII)
_SECONDS = re.compile(r"\s*(\d{1,18})\s*", re.ASCII)


class CacheControl(NamedTuple):
    """The directives that matter to a private client. Malformed directives are ignored.

    `s-maxage` is for shared proxies and ignored. `must-revalidate` forbids the use of a stale copy, which no crawler shows.

    >>> CacheControl.of("public, max-age=600, immutable")
    CacheControl(max_age_s=600.0, no_store=False, no_cache=False, immutable=True)

    Attributes:
        max_age_s: For how long the response is fresh, or None if it does not say.
        no_store: Nothing of the response is to be kept.
        no_cache: Each use of a copy needs a request, perhaps a conditional one. With a list of fields it counts as for all.
        immutable: The response does not change while it is fresh (RFC 8246).
    """

    max_age_s: float | None = None
    no_store: bool = False
    no_cache: bool = False
    immutable: bool = False

    @classmethod
    def of(cls, text: str) -> "CacheControl":
        """Read a field; several fields are joined by commas."""
        return _usual(text) if len(text) <= _USUAL else _parsed(text[:_LONGEST])


NO_CACHE_CONTROL = CacheControl()


def _parsed(text: str) -> CacheControl:
    directives = [part.strip().lower() for part in text.split(",")]
    names = {name.partition("=")[0].rstrip() for name in directives}
    ages = [int(match[1]) for match in map(_MAX_AGE.fullmatch, directives) if match is not None]
    # RFC 9111, 4.2.1: of conflicting values, the shortest is the careful choice.
    longest = float(min(ages)) if ages else None
    return CacheControl(longest, "no-store" in names, "no-cache" in names, "immutable" in names)


_usual = lru_cache(maxsize=1_000)(_parsed)


def age_s(age: str | None) -> float:
    """Return for how long the response was in caches on its way, 0 if the field does not say.

    >>> age_s("120"), age_s("soon"), age_s(None)
    (120.0, 0.0, 0.0)
    """
    spent = _SECONDS.fullmatch((age or "")[:64])
    return float(spent[1]) if spent else 0.0
