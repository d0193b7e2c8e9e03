"""A task as a row of a durable store. Its payload is JSON there, and must be loaded as it was put."""

import json

from polite.errors import InvalidOption
from polite.frontier.durable.batch import Put, Row
from polite.frontier.task_store import TaskDraft
from polite.origin import Origin, Target
from polite.task import Task

# A payload as JSON: octets, and lists and dicts within one another. SQLite refuses a row of 1,000,000,000 octets, and with it a
# whole batch; and JSON that one Python can write may be nested too deep for another to
# read, or for the same one further down its stack.
PAYLOAD_LIMIT, DEEPEST = 16 * 1024 * 1024, 100


def as_json(payload: object, target: Target, limit: int) -> str | None:
    """Return a payload as JSON. Raises InvalidOption if it would be loaded as another value."""
    if payload is None:
        return None
    try:
        text = json.dumps(payload)
        if len(text) > limit:
            why = f"it is {len(text)} octets of JSON, and {limit} is the limit"
        elif _deeper(text, payload):
            why = f"lists and dicts are nested deeper than the limit of {DEEPEST}"
        elif json.loads(text) == payload:
            return text
        else:
            why = "it would be loaded as another value"
    except (TypeError, ValueError, RecursionError) as error:
        why = str(error)
    raise InvalidOption(
        f"payload of type {type(payload).__name__}: a frontier that is kept in a store needs what JSON can hold "
        f"(None, bool, int, float, str, and lists and dicts of these): {why}",
        url=target.url,
    )


def _deeper(text: str, payload: object) -> bool:
    """Whether the payload is nested deeper than DEEPEST. Its JSON, `text`, rules that out for most."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    level = [payload]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, list | dict)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return any(isinstance(each, list | dict) for each in level)


def row_of(number: int, draft: TaskDraft, put: Put) -> Row:
    """Return the row that a Put has become."""
    return (
        number,
        put.path,
        draft.priority,
        draft.depth,
        draft.deadline,
        draft.not_before,
        0,
        put.payload,
        put.identity,
    )


def task_of(origin: Origin, row: Row, queued_at: float) -> Task:
    """Return the task of a row; `queued_at` is monotonic seconds."""
    number, path, priority, depth, deadline, not_before, tries, payload, identity = row
    return Task(
        target=Target(origin, path),
        number=number,
        priority=priority,
        depth=int(depth) if depth == int(depth) else depth,  # type: ignore[arg-type]
        deadline=deadline,
        not_before=not_before,
        tries=tries,
        queued_at=queued_at,
        payload=None if payload is None else json.loads(payload),
        identity=identity,
    )
