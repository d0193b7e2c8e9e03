"""Orders of an operator that come as JSON: from the status page, and from `polite hold` and its like."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from polite.errors import InvalidOption
from polite.frontier.frontier import Frontier
from polite.gate.gate import Gate
from polite.options import number

# Octets of a request.
MOST_OCTETS = 16_384
_FIELDS = frozenset({"action", "pattern", "because", "until", "for_s", "by"})


def standing(gate: Gate) -> list[dict[str, Any]]:
    """Return the orders that stand, as JSON values."""
    return [asdict(order) for order in gate.orders]


async def act(gate: Gate, frontier: Frontier | None, given: Mapping[str, Any], by: str) -> dict[str, Any]:
    """Do what a request says: `{"action": "hold", "pattern": "*.example.com", "because": "...", "for_s": 3600}`.

    Args:
        given: It has `action` (hold, forbid, release or drop), `pattern`, `because`, and for a hold `until` (Unix time) or
            `for_s` (seconds). `by` is shown after the name of who asked.
        by: Who asked.

    Raises:
        InvalidOption: The request has the wrong form, or there is no frontier to drop tasks of.
        Overloaded, StoreFailed: As `Gate.hold`.
    """
    pattern, because = given.get("pattern"), given.get("because") or "no reason was given"
    said = given.get("by")
    common = {"because": because, "by": f"{by} ({said})" if isinstance(said, str) and said else by}
    match given.get("action"):
        case "hold":
            for_s = None if given.get("for_s") is None else number("for_s", given["for_s"])
            done: Any = await gate.hold(pattern, until=given.get("until"), for_=for_s, **common)  # type: ignore[arg-type]
        case "forbid":
            done = await gate.forbid(pattern, **common)  # type: ignore[arg-type]
        case "release":
            done = await gate.release(pattern, **common)  # type: ignore[arg-type]
        case "drop" if frontier is not None:
            await frontier.drop(pattern, **common)  # type: ignore[arg-type]
            done = []
        case "drop":
            wrong = "drop: there is no frontier here, and so no task to drop; forbid the pattern instead"
            raise InvalidOption(wrong)
        case action:
            raise InvalidOption(f"action must be hold, forbid, release or drop, got {str(action)[:40]!r}")
    return {"orders": [asdict(order) for order in (done if isinstance(done, list) else [done])]}


def read(body: bytes) -> Mapping[str, Any]:
    """Return the fields of a request. Raises InvalidOption."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not given.keys() <= _FIELDS:
        raise InvalidOption(f"a JSON object with some of {', '.join(sorted(_FIELDS))} is needed")
    return given
