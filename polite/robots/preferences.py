"""Preferences: what a Content-Usage or Content-Signal line says about each category of use."""

from collections.abc import Iterable, Iterator, Mapping

from polite.http.structured_fields import Item, Malformed, Token, parse_dictionary
from polite.robots.lines import readable

_YES_NO = {"y": True, "n": False}
_SIGNALS = {"yes": True, "no": False}
# The levels of `use`. An unknown level might be stricter than all of them.
_STRICTNESS = {"full": 1, "reference": 2, "immediate": 3}
_UNKNOWN_LEVEL = 4


def usage(text: str) -> dict[str, bool]:
    """Return the yes and no of `train-ai=n, search=y` (draft-ietf-aipref-vocab, 6).

    The text must be a dictionary of structured fields (RFC 9651); any other text is ignored as a whole. Values other
    than y and n are ignored, and so are parameters. If a category is named twice, the last value counts.
    """
    try:
        members = parse_dictionary(text)
    except Malformed:
        return {}
    return {
        name: _YES_NO[member.value]
        for name, member in members.items()
        if isinstance(member, Item) and isinstance(member.value, Token) and member.value in _YES_NO
    }


def signals(text: str) -> dict[str, bool]:
    """Return the yes and no of `search=yes, ai-train=no` (Content Signals policy).

    Case is ignored; a malformed pair is skipped.
    """
    return strictest({name: _SIGNALS[value]} for name, value in _pairs(text) if value in _SIGNALS)


def values(text: str) -> dict[str, str]:
    """Return the other values of a Content-Signal line, such as `use=reference`, in lower case."""
    return strictest_values({name: value} for name, value in _pairs(text) if value and value not in _SIGNALS)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in readable(text).lower().split(","):
        name, _, value = pair.partition("=")
        if name := name.strip():
            yield name, value.strip()


def strictest(statements: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """Merge statements: a single no is enough (draft-ietf-aipref-vocab, 5.1)."""
    merged: dict[str, bool] = {}
    for statement in statements:
        for name, allowed in statement.items():
            merged[name] = merged.get(name, True) and allowed
    return merged


def strictest_values(statements: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge statements: the strictest value of `use`, and the first value of any other key.

    Of `use`, immediate is stricter than reference, and reference than full.
    """
    merged: dict[str, str] = {}
    for statement in statements:
        for name, value in statement.items():
            known = merged.setdefault(name, value)
            if name == "use" and _strictness(value) > _strictness(known):
                merged[name] = value
    return merged


def _strictness(level: str) -> int:
    return _STRICTNESS.get(level, _UNKNOWN_LEVEL)
