"""SitemapEnded: the end of a file before its last octet."""


class SitemapEnded(Exception):
    """A file is not read further. What came before counts."""


def beyond(option: str, limit: int, what: str) -> SitemapEnded:
    """Return the end of a file that exceeds a limit of the policy."""
    return SitemapEnded(f"more than SitemapPolicy.{option}={limit} {what}")
