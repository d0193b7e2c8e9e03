"""When a page is worth fetching again, from its response (RFC 9111, 4.2)."""

from dataclasses import dataclass

from polite.http.cache_control import NO_CACHE_CONTROL, CacheControl, age_s
from polite.http.date import unix_time
from polite.http.header_fields import Fields, text_of
from polite.recrawl.policy import RecrawlPolicy
from polite.recrawl.validators import NO_VALIDATORS, Validators, validators_of

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
        date = _first_date(found.get("date", []))
        expires = [_time(value) for value in found.get("expires", [])]
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
    if status is not None and not _says_nothing_of_the_page(status):
        wanted = _fresh_s(policy, status, fields, now)
    return min(max(wanted, policy.min_interval), policy.max_interval)


def _says_nothing_of_the_page(status: int) -> bool:
    busy_or_broken = status == _TOO_MANY_REQUESTS or (
        status >= _LEAST_SERVER_ERROR and status != _NOT_IMPLEMENTED
    )
    return status < _LEAST_FINAL or busy_or_broken


def _fresh_s(policy: RecrawlPolicy, status: int, fields: ResponseFields, now: float) -> float:
    """Return for how long the response is fresh from now, or the policy's default if it does not say."""
    made_at = now if fields.date is None else fields.date
    lifetime = _stated_lifetime_s(policy, fields, made_at)
    if lifetime is None and status in _HEURISTIC_STATUSES:
        lifetime = _probable_lifetime_s(policy, fields, made_at)
    if lifetime is None:
        return policy.default_interval
    # RFC 9111, 4.2.3. A server's clock that is ahead makes no response younger, since an Age is never negative.
    return lifetime - max(fields.age_s, now - made_at)


def _stated_lifetime_s(policy: RecrawlPolicy, fields: ResponseFields, made_at: float) -> float | None:
    """Return the lifetime that the response states, from its making (RFC 9111, 4.2.1), or None."""
    asked = fields.cache_control
    if asked.no_store or asked.no_cache:
        return 0.0
    if asked.max_age_s is not None:
        return asked.max_age_s
    if fields.expires is not None:
        return fields.expires - made_at
    # Without an end, it never changes.
    return policy.max_interval if asked.immutable else None


def _probable_lifetime_s(policy: RecrawlPolicy, fields: ResponseFields, made_at: float) -> float | None:
    """Return a share of the page's age (RFC 9111, 4.2.2), or None."""
    modified_at = _first_date([fields.validators.last_modified or ""])
    if modified_at is None or modified_at > made_at or not policy.modified_share:
        return None
    return policy.modified_share * (made_at - modified_at)


def _first_date(values: list[str]) -> float | None:
    return _time(values[0]) if values else None


def _time(value: str) -> float | None:
    return unix_time(value.strip(" \t"))
