"""ETag and Last-Modified of a response, and the conditional request that they make (RFC 9110, 8.8 and 13.1)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from polite.http.date import unix_time

# Octets. Real tags have 10 to 60; a server may send anything, and each next request repeats it.
_LONGEST_TAG = 512
# RFC 9110, 8.8.3, without obs-text: HTTP clients decode it in different ways, so it could not be repeated. Without quotes it is no
# entity-tag, and `*` would match anything. An empty tag tells nothing apart.
_ENTITY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]+"')


@dataclass(frozen=True, slots=True)
class Validators:
    """What a later request can name, so that the server answers 304 if the page has not changed.

    >>> Validators('"v1"', "Sun, 06 Nov 1994 08:49:37 GMT").headers
    {'If-None-Match': '"v1"', 'If-Modified-Since': 'Sun, 06 Nov 1994 08:49:37 GMT'}

    Attributes:
        etag: The entity-tag, weak or strong, as sent; or None.
        last_modified: The date of Last-Modified, as sent; or None.
    """

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return self.etag is not None or self.last_modified is not None

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of a conditional request. A server that knows tags ignores the date (RFC 9110, 13.1.3)."""
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in found.items() if value is not None}

    def renewed(self, newer: "Validators") -> "Validators":
        """Return what is known after a 304: its own validators (`newer`), and of these what it does not name (RFC 9111, 4.3.4)."""
        return Validators(newer.etag or self.etag, newer.last_modified or self.last_modified)


NO_VALIDATORS = Validators()


def validators_of(
    etags: Sequence[str], last_modified: Sequence[str], date: float | None = None
) -> Validators:
    """Return the validators that a response can be asked for again with. What is malformed, or ambiguous, is left out.

    Args:
        etags: The values of its ETag fields.
        last_modified: The values of its Last-Modified fields.
        date: Its Date (Unix time), or None.
    """
    etag, modified = _one(etags), _one(last_modified)
    if modified is not None:
        modified_at = unix_time(modified)
        # A page that changed in the very second of its response may change once more in it, and one from the future at any time:
        # the date would hide that (RFC 9110, 8.8.2.2).
        if modified_at is None or (date is not None and modified_at >= date):
            modified = None
    return Validators(etag if etag is not None and is_entity_tag(etag) else None, modified)


def is_entity_tag(text: str) -> bool:
    """Return whether a text can be sent as If-None-Match."""
    return len(text) <= _LONGEST_TAG and _ENTITY_TAG.fullmatch(text) is not None


def _one(values: Sequence[str]) -> str | None:
    """Return the value of a field that may be sent once. Of several that differ, none can be trusted."""
    stripped = {value.strip(" \t") for value in values}
    return stripped.pop() if len(stripped) == 1 else None
