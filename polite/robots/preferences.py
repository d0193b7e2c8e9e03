"""Preferences: what a Content-Usage or Content-Signal line says about each category of use.

Content-Usage: draft-ietf-aipref-attach-05 (19 August 2026) and draft-ietf-aipref-vocab-08 (13 September 2026), which have
no consensus yet and may change. Content-Signal: the Content Signals policy (contentsignals.org, 24 September 2025), and its
key `use` (1 July 2026).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from polite.http.structured_fields import Item, Malformed, Member, Token, parse_dictionary
from polite.robots.lines import readable

_YES_NO = {"y": True, "n": False}
_SIGNALS = {"yes": True, "no": False}
_NO_WORDS = frozenset({"n", "no", "none", "false", "0"})
# The levels of `use`. An unknown level might be stricter than all of them.
_STRICTNESS = {"full": 1, "reference": 2, "immediate": 3}
_UNKNOWN_LEVEL = 4
# A label, and a value that can only mean no: what sites write for `n` or for `no`. Possessive repeats keep a match linear.
_REFUSAL = re.compile(
    r"(?<![a-z0-9_.*-])([a-z*][a-z0-9_.*-]*+)[ \t]*+[=:][ \t]*+[\"']?+(?:n|no|none|false|\?0|0)(?![a-z0-9_.*/+-])"
)


def usage(text: str) -> dict[str, bool]:
    """Return the yes and no of `train-ai=n, search=y` (draft-ietf-aipref-vocab-08, 6).

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


def refusals(field: str, text: str, said: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the labels that a line refuses in a form that its specification does not have, such as `train-ai=no`.

    RFC 9651 voids all of a Content-Usage with a mistake in it, so that its preferences are unknown (vocab-08, 6.5). A careful
    reader takes no permission from such a line, and still obeys each refusal that can be told.

    Args:
        field: "content-usage" or "content-signal".
        text: the value.
        said: what `usage` or `signals` returned for it.
    """
    told = tuple(name for name in _told(text) if said.get(name, True))
    if field != "content-usage" or not told:
        return told
    try:
        members = parse_dictionary(text)
    except Malformed:
        return told
    return tuple(name for name in told if name in members and _means_no(members[name]))


def is_void(text: str) -> bool:
    """Return whether a Content-Usage is void as a whole (RFC 9651, 4.2)."""
    try:
        parse_dictionary(text)
    except Malformed:
        return True
    return False


def _told(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_REFUSAL.findall(text.lower())))


def _means_no(member: Member) -> bool:
    if not isinstance(member, Item):
        return False
    # 0 and ?0 are equal.
    return member.value == 0 or (isinstance(member.value, str) and member.value.lower() in _NO_WORDS)


def values(text: str) -> dict[str, str]:
    """Return the other values of a Content-Signal line, such as `use=reference`, in lower case."""
    return strictest_values({name: value} for name, value in _pairs(text) if value and value not in _SIGNALS)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in readable(text).lower().split(","):
        name, _, value = pair.partition("=")
        if name := name.strip():
            yield name, value.strip()


def strictest(statements: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """Merge statements: a single no is enough (draft-ietf-aipref-vocab-08, 5.1)."""
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
