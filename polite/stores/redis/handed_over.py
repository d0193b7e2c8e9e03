"""What a home's next owner gets: the pacer's state of the home, and the frontier's note, as one text."""

import json

# A note begins a text with this. The pacer's state, which is JSON too, has no such member.
_MARK = '{"note":'


def joined(state: str | None, note: str | None) -> str | None:
    """Return one text, or None if there is nothing to hand over."""
    if note is None:
        return state
    return json.dumps({"note": note, "state": state}, separators=(",", ":"), ensure_ascii=False)


def parted(text: str | None) -> tuple[str | None, str | None]:
    """Return the state and the note. A text that another version wrote, and that cannot be read, is a state as it is."""
    if text is None or not text.startswith(_MARK):
        return text, None
    try:
        given = json.loads(text)
        return given["state"], str(given["note"])
    except (ValueError, KeyError, RecursionError):
        return text, None
