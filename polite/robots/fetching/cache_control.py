"""For how long a robots.txt is fresh, by Cache-Control and Age (K2; RFC 9111, 5.2.2)."""

from polite.http.cache_control import CacheControl, age_s


def max_age_s(cache_control: str | None, age: str | None = None) -> float | None:
    """Return for how many seconds from now the response is fresh, or None if it does not say.

    `no-store` and `no-cache` are 0. The policy's `min_ttl` still applies; otherwise the file would be fetched for each page.
    """
    if not cache_control:
        return None
    asked = CacheControl.of(cache_control)
    if asked.no_store or asked.no_cache:
        return 0.0
    return None if asked.max_age_s is None else max(0.0, asked.max_age_s - age_s(age))
