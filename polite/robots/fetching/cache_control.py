"""Cache-Control and Age: for how long a response is fresh (K2; RFC 9111, 5.2.2)."""

import re

# Octets that are read. The relevant directives come early in any honest header.
_LONGEST = 4096
_MAX_AGE = re.compile(r"max-age\s*=\s*\"?(\d{1,18})\"?", re.ASCII)
_SECONDS = re.compile(r"\s*(\d{1,18})\s*", re.ASCII)


def max_age_s(cache_control: str | None, age: str | None = None) -> float | None:
    """Return for how many seconds from now the response is fresh, or None if it does not say.

    `no-store` and `no-cache` are 0. The policy's `min_ttl` still applies; otherwise the file would be fetched for each
    page. `s-maxage` is for shared proxies and ignored. Malformed directives are ignored.
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
    # RFC 9111, 4.2.1: of conflicting values, the shortest is the careful choice.
    return float(max(0, min(ages) - (int(spent[1]) if spent else 0)))
