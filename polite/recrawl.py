"""When a page is worth fetching again, from its response (RFC 9111, 4.2)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from polite.http.header_fields import NO_CACHE_CONTROL, CacheControl, Fields, age_s, text_of, unix_time
from polite.options import number

_HOUR_S, _DAY_S = 3_600.0, 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecrawlPolicy:
    """When a page is worth fetching again (`Permit.due`). Durations are in seconds of the wall clock.

    >>> RecrawlPolicy(min_interval=600.0).min_interval
    600.0

    Attributes:
        min_interval: The shortest time from a response to the next fetch, whatever the response says.
        max_interval: The longest one.
        default_interval: The interval for a response that says nothing: no max-age, no Expires, no Last-Modified. Kept within the
            limits, too.
        modified_share: The interval for a response with Last-Modified only, as a share of its age: RFC 9111, 4.2.2 names a tenth. 0
            ignores Last-Modified.

    Raises:
        InvalidOption: A value is out of range.
    """

    min_interval: float = _HOUR_S
    max_interval: float = 30 * _DAY_S
    default_interval: float = _DAY_S
    modified_share: float = 0.1

    def __post_init__(self) -> None:
        number("RecrawlPolicy: min_interval", self.min_interval)
        number("RecrawlPolicy: max_interval", self.max_interval, least=self.min_interval)
        number("RecrawlPolicy: default_interval", self.default_interval)
        number("RecrawlPolicy: modified_share", self.modified_share, most=1.0)


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


# The fields that are read, and Retry-After, which pacing reads.
RELEVANT_FIELDS = frozenset(
    ("age", "cache-control", "date", "etag", "expires", "last-modified", "retry-after")
)
# Fields of one name that are read.
_MOST_FIELDS = 16
# RFC 9110, 15.1: these may be fresh although they do not say so. A 304 speaks for the 200 before it.
_HEURISTIC_STATUSES = frozenset((200, 203, 204, 206, 300, 301, 304, 308, 404, 405, 410, 414, 501))
_LEAST_FINAL, _TOO_MANY_REQUESTS, _LEAST_SERVER_ERROR, _NOT_IMPLEMENTED = 200, 429, 500, 501


@dataclass(frozen=True, slots=True)
class ResponseFields:
    """What the header fields of a response say about the next request.

    Attributes:
        validators: The validators that can be used.
        cache_control: Its Cache-Control.
        age_s: Its Age.
        date: Its Date (Unix time), or None.
        expires: Its Expires (Unix time): None without the field, 0 if it is no date, which means the past (RFC 9111, 5.3).
    """

    validators: Validators = NO_VALIDATORS
    cache_control: CacheControl = NO_CACHE_CONTROL
    age_s: float = 0.0
    date: float | None = None
    expires: float | None = None

    @classmethod
    def of(cls, fields: Fields) -> "ResponseFields":
        """Read fields whose names are in lower case.

        >>> ResponseFields.of([("etag", '"v1"'), ("cache-control", "max-age=60")]).validators.etag
        '"v1"'
        """
        values: dict[str, list[str]] = {}
        for name, value in fields:
            values.setdefault(name, []).append(text_of(value))
        found = {name: each[:_MOST_FIELDS] for name, each in values.items()}
        date = next((unix_time(value.strip(" \t")) for value in found.get("date", [])), None)
        expires = [unix_time(value.strip(" \t")) for value in found.get("expires", [])]
        return cls(
            validators_of(found.get("etag", []), found.get("last-modified", []), date),
            CacheControl.of(",".join(found.get("cache-control", []))),
            age_s(next(iter(found.get("age", [])), None)),
            date,
            # Of several, the earliest is the careful choice (RFC 9111, 4.2.1).
            min((each or 0.0 for each in expires), default=None),
        )


def interval_s(
    policy: RecrawlPolicy,
    status: int | None,
    fields: ResponseFields,
    now: float,
    *,
    retry_after_s: float | None = None,
) -> float:
    """Return the seconds until the page is worth fetching again, within the policy's limits.

    Args:
        policy: The limits, and what applies if the response does not say.
        status: The response's status; None if the request failed.
        fields: What its header fields say.
        now: Unix time.
        retry_after_s: Its Retry-After in seconds, or None.
    """
    wanted = retry_after_s or 0.0
    busy_or_broken = status is not None and (
        status == _TOO_MANY_REQUESTS or (status >= _LEAST_SERVER_ERROR and status != _NOT_IMPLEMENTED)
    )
    if status is not None and status >= _LEAST_FINAL and not busy_or_broken:
        made_at = now if fields.date is None else fields.date
        lifetime = _lifetime_s(policy, status, fields, made_at)
        # RFC 9111, 4.2.3. A server's clock that is ahead makes no response younger, since an Age is never negative.
        age = max(fields.age_s, now - made_at)
        wanted = policy.default_interval if lifetime is None else lifetime - age
    return min(max(wanted, policy.min_interval), policy.max_interval)


def _lifetime_s(policy: RecrawlPolicy, status: int, fields: ResponseFields, made_at: float) -> float | None:
    """Return the lifetime of a response from its making, as stated (RFC 9111, 4.2.1) or probable (4.2.2), or None."""
    asked = fields.cache_control
    if asked.no_store or asked.no_cache:
        return 0.0
    if asked.max_age_s is not None:
        return asked.max_age_s
    if fields.expires is not None:
        return fields.expires - made_at
    if asked.immutable:
        # Without an end, it never changes.
        return policy.max_interval
    modified_at = unix_time(fields.validators.last_modified or "")
    if status not in _HEURISTIC_STATUSES or modified_at is None or modified_at > made_at:
        return None
    return policy.modified_share * (made_at - modified_at) if policy.modified_share else None
