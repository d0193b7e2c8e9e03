"""Recognises the common ASCII http(s) URL that parsing would not change."""

import re

# A name of non-empty labels. The last one starts with a letter, so it cannot be an IPv4 address.
# Possessive repeats (*+, ++) never backtrack: each character is read once.
_PLAIN_ORIGIN = re.compile(r"(https?)://((?:[a-z0-9_\-]++\.)*+[a-z][a-z0-9_\-]*+)").fullmatch

# Characters that the path and query states keep, up to a fragment or the end. Dots and %2e are checked separately.
_PLAIN_PATH = re.compile(r"(/[!$-;=@-Z\[\]_a-z|~]*+(?:\?[!$-&(-;=?-~]*+)?)(?:#|\Z)").match
_ENCODED_DOT = re.compile(r"%2e", re.IGNORECASE).search


def canonical_origin(text: str) -> tuple[str, str] | None:
    """Return scheme and host of a canonical `scheme://host` without port, or None: parse it."""
    found = _PLAIN_ORIGIN(text)
    return None if found is None else (found[1], found[2])


def canonical_path(url: str, start: int) -> str | None:
    """Return the path and query from `start` on if they are canonical, or None: parse the URL.

    `start` must be the first slash after the authority.
    """
    found = _PLAIN_PATH(url, start)
    if found is None:
        return None
    path: str = found[1]
    if "/." in path or ("%2" in path and _ENCODED_DOT(path)):
        return None
    return path
