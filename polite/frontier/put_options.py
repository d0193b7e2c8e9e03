"""The options of a put, and what they must be."""

import math
from typing import TypedDict

from polite.errors import InvalidOption, redact_url
from polite.frontier.task_store import TaskDraft
from polite.options import boolean
from polite.task import KEYED, NOT_UNIQUE

_MOST_WHOLE = 2**63
# Octets of a task's key.
_MAX_KEY = 16 * 1024


class PutOptions(TypedDict, total=False):
    """The options of `Frontier.put` that several URLs may share."""

    priority: float
    depth: int
    not_before: float | None
    deadline: float | None
    payload: object
    unique: bool
    again: bool
    wait: bool


def draft_of(
    priority: float = 0,
    depth: int = 0,
    not_before: float | None = None,
    deadline: float | None = None,
    payload: object = None,
    key: str | None = None,
    *,
    unique: bool = True,
    **_: object,
) -> TaskDraft:
    """Return the options as a store takes them. Raises InvalidOption."""
    for name, value in (("priority", priority), ("depth", depth)):
        _finite(name, value)
    for name, when in (("not_before", not_before), ("deadline", deadline)):
        if when is not None:
            _finite(name, when)
            if float(when) != when:
                # A file keeps times as floats.
                raise InvalidOption(f"{name}={when!r}: Unix time as a float can hold it is needed")
    return TaskDraft(priority, depth, not_before, deadline, payload, _identity(key, unique=unique))


def _identity(key: str | None, *, unique: bool) -> str | None:
    """Return what a task is found by, if not by its URL."""
    if key is None:
        return None if boolean("unique", unique) else NOT_UNIQUE
    if not boolean("unique", unique):
        raise InvalidOption(f"key={key!r} with unique=False: a task that is not unique needs no key")
    if not 1 <= _octets(key) <= _MAX_KEY:
        raise InvalidOption(
            f"key={redact_url(repr(key))}: a string of 1 to {_MAX_KEY} octets of UTF-8 is needed"
        )
    return KEYED + key


def _octets(text: object) -> int:
    """Return how many octets the text has in UTF-8; 0 if it is none."""
    try:
        return len(text.encode()) if isinstance(text, str) else 0
    except UnicodeEncodeError:
        return 0


def _finite(name: str, value: float) -> None:
    if type(value) not in (int, float) or not -math.inf < value < math.inf:
        raise InvalidOption(f"{name}={redact_url(repr(value))}: a finite number is needed")
    # What a file can hold, in memory too: a larger integer would lose its last digits there, and with them the order. The order
    # by priority needs its negative as well, which -2**63 does not have.
    if type(value) is int and not -_MOST_WHOLE < value < _MOST_WHOLE:
        raise InvalidOption(
            f"{name}={redact_url(repr(value))}: an integer from -2**63 + 1 to 2**63 - 1 is needed"
        )
