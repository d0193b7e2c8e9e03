"""A task as the server stores it: its digest, and its fields as JSON."""

import json
from base64 import urlsafe_b64encode
from hashlib import blake2b

from polite.frontier.durable.backend import Put, Row
from polite.origin import Target
from polite.stores.redis.changes import PutEntry
from polite.stores.redis.step_reply import TaskRow
from polite.task import NOT_UNIQUE, seen_as

# Octets of a URL's digest: 1,000,000,000 URLs have two that are equal with a chance of 1 to 10**11.
_DIGEST_OCTETS = 12
# What JSON has instead of infinity, which tasks without a deadline have as their key.
_FAR = 1e300


def digest_of(target: Target, identity: str | None) -> str:
    """Return the name of a task among those of its origin. It begins with NOT_UNIQUE if the task is not: see step.lua."""
    digest = blake2b(seen_as(target, identity).encode(), digest_size=_DIGEST_OCTETS).digest()
    name = urlsafe_b64encode(digest).decode()
    return name if identity is None or not identity.startswith(NOT_UNIQUE) else NOT_UNIQUE + name


def entry_of(put: Put, home: str, digest: str, key: float | None, now: float) -> PutEntry:
    """Return what the server stores of a put, `key` being the scheduler's."""
    key = None if key is None else max(-_FAR, min(_FAR, key))
    priority, depth, not_before, deadline, payload, identity = put.draft
    row = [put.target.path, priority, depth, deadline, not_before, payload, key]
    if identity is not None:
        row.append(identity)
    origin, ready_in = put.target.origin.text, microseconds_until(put.ready_at, now)
    return PutEntry(home, origin, digest, json.dumps(row), key, put.again, ready_in)


def row_of(stored: TaskRow, number: int) -> Row:
    """Return a stored task as the frontier knows it. Raises ValueError or TypeError if it is damaged."""
    path, priority, depth, deadline, not_before, payload, _, *more = json.loads(stored.text)
    identity = more[0] if more else None
    return (number, path, priority, depth, deadline, not_before, stored.tries, payload, identity)


def microseconds_until(at: float | None, now: float) -> int | None:
    """Return how long a task waits; None if it is ready."""
    return None if at is None else max(0, round((at - now) * 1e6))
