"""A task as a row of a frontier's file: its payload is JSON there, and must come back as it was."""

import json

from polite.errors import InvalidOption
from polite.origin import Origin, Target
from polite.stock import Draft
from polite.stores.queue_batch import Put, Row
from polite.tasks import Task


def as_json(payload: object, target: Target) -> str | None:
    """A payload as JSON. Raises InvalidOption for what would not come back as it is."""
    if payload is None:
        return None
    try:
        text = json.dumps(payload)
        if json.loads(text) == payload:
            return text
        why = "it would come back as another value"
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    raise InvalidOption(
        f"payload of type {type(payload).__name__}: a frontier in a file needs what JSON can hold "
        f"(None, bool, int, float, str, and lists and dicts of these): {why}",
        url=target.url,
    )


def row_of(number: int, draft: Draft, put: Put) -> Row:
    """The row that came of a Put."""
    return (
        number,
        put.path,
        draft.priority,
        draft.depth,
        draft.deadline,
        draft.not_before,
        0,
        put.payload,
    )


def task_of(origin: Origin, row: Row, asked_at: float) -> Task:
    """The task of a row; `asked_at` is monotonic seconds."""
    number, path, priority, depth, deadline, not_before, tries, payload = row
    return Task(
        target=Target(origin, path),
        number=number,
        priority=priority,
        depth=int(depth) if depth == int(depth) else depth,  # type: ignore[arg-type]
        deadline=deadline,
        not_before=not_before,
        tries=tries,
        asked_at=asked_at,
        payload=None if payload is None else json.loads(payload),
    )
