"""All that a store knows about an origin, as text and as JSON."""

import json
import math
from datetime import UTC, datetime
from typing import Any

from polite.cli.terminal import printable

_TIMES = ("fetched_at", "expires_at", "unreachable_since", "good_at", "back_off_until")


def as_json(known: dict[str, Any]) -> str:
    """Return one object. Infinity becomes null, since JSON has no infinity."""
    return json.dumps({name: None if value == math.inf else value for name, value in known.items()})


def page(known: dict[str, Any], body: str | None) -> str:
    """Return all that is known about an origin, and its robots.txt."""
    lines = [known["origin"]]
    for name, value in known.items():
        if value is not None and name not in ("origin", "body"):
            lines.append(printable(f"  {name}: {_when(value) if name in _TIMES else value}"))
    if body is not None:
        lines += ["", *map(printable, body.splitlines())]
    return "\n".join(lines)


def _when(wall: float) -> str:
    try:
        return datetime.fromtimestamp(wall, UTC).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return str(wall)  # a policy may set infinity
