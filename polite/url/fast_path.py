"""Recognises, at a glance, the common ASCII http(s) URL that parsing would not change."""

import re

# A name of non-empty labels; the last starts with a letter, so that it cannot be an IPv4 address in disguise.
# Possessive repeats (*+, ++) never give back what they took: each character is looked at once.
_PLAIN_ORIGIN = re.compile(r"(https?)://((?:[a-z0-9_\-]++\.)*+[a-z][a-z0-9_\-]*+)").fullmatch

# The path and query state's own characters, up to a fragment or the end. Dots and %2e are looked for apart.
_PLAIN_PATH = re.compile(r"(/[!$-;=@-Z\[\]_a-z|~]*+(?:\?[!$-&(-;=?-~]*+)?)(?:#|\Z)").match
_ENCODED_DOT = re.compile(r"%2e", re.IGNORECASE).search


def canonical_origin(text: str) -> tuple[str, str] | None:
    """The scheme and host of a `scheme://host` without a port, when both are canonical; None: parse it."""
    found = _PLAIN_ORIGIN(text)
    return None if found is None else (found[1], found[2])


def canonical_path(url: str, start: int) -> str | None:
    """The path and query that begin at `start`, when they are canonical; None: parse the URL.

    What follows `start` must be a path: `start` is at the first slash after the authority.
    """
    found = _PLAIN_PATH(url, start)
    if found is None:
        return None
    path: str = found[1]
    if "/." in path or ("%2" in path and _ENCODED_DOT(path)):
        return None
    return path
