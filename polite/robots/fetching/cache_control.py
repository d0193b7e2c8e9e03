"""How long an answer says it is good for: Cache-Control and Age, read with mistrust (K2; RFC 9111, 5.2.2)."""

import re

# A header is at most some KiB on the wire; the directives that matter come early in any honest one.
_LONGEST = 4096
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,18})\"?", re.ASCII)
_SECONDS = re.compile(r"\s*(\d{1,18})\s*", re.ASCII)


def max_age_s(cache_control: str | None, age: str | None = None) -> float | None:
    """Seconds that the answer is good from now, or None when it does not say.

    `no-store` and `no-cache` are 0: the policy's `min_ttl` still holds, or a site would be asked at each page.
    `s-maxage` speaks to shared proxies and is passed over. Garbage is as if it were not there.
    """
    if not cache_control:
        return None
    directives = [part.strip().lower() for part in cache_control[:_LONGEST].split(",")]
    if any(name.partition("=")[0].rstrip() in {"no-store", "no-cache"} for name in directives):
        return 0.0
    ages = [int(match[1]) for match in map(_MAX_AGE.fullmatch, directives) if match is not None]
    if not ages:
        return None
    spent = _SECONDS.fullmatch((age or "")[:64])
    # RFC 9111, 4.2.1: of conflicting values the shortest is the careful one.
    return float(max(0, min(ages) - (int(spent[1]) if spent else 0)))
