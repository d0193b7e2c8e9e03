"""Preferences: what a Content-Usage or Content-Signal line says about each category of use, as yes and no."""

import re
from collections.abc import Iterable, Mapping

# Structured fields (RFC 9651, 3.2 and 4.2). Possessive repeats (*+, ++) keep each match linear.
_KEY = r"[a-z*][a-z0-9_.*-]*+"
_WORD = r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*+"
_STRING = r'"(?:[ !#-\[\]-~]|\\["\\])*+"'
_BARE = rf"(?:{_WORD}|-?[0-9]{{1,15}}+(?:\.[0-9]{{1,3}}+)?|{_STRING}|:[A-Za-z0-9+/=]*+:|\?[01]|@-?[0-9]{{1,15}}+|%{_STRING})"
_PARAMETERS = rf"(?:;\ *+{_KEY}(?:={_BARE})?+)*+"
_ITEM = rf"{_BARE}{_PARAMETERS}"
_LIST = rf"\(\ *+(?:{_ITEM}(?:\ ++{_ITEM})*+\ *+)?+\)"
_MEMBER = re.compile(rf"({_KEY})(?:=(?:({_WORD})(?=[;,\ \t]|$)|{_BARE}|{_LIST}))?+{_PARAMETERS}", re.ASCII)
_COMMA = re.compile(r"[ \t]*+,[ \t]*+")

_YES_NO = {"y": True, "n": False}
_SIGNALS = {"yes": True, "no": False}


def usage(text: str) -> dict[str, bool]:
    """`train-ai=n, search=y` by the IETF's draft of the vocabulary (draft-ietf-aipref-vocab, 6).

    Of a category named twice the last counts; values that are neither y nor n, and parameters, say nothing. A text that
    is no dictionary of structured fields says nothing at all.
    """
    found: dict[str, str | None] = {}
    position = 0
    while member := _MEMBER.match(text, position):
        found[member[1]] = member[2]
        if member.end() == len(text):
            return {name: _YES_NO[value] for name, value in found.items() if value in _YES_NO}
        comma = _COMMA.match(text, member.end())
        if comma is None:
            break
        position = comma.end()
    return {}


def signals(text: str) -> dict[str, bool]:
    """`search=yes, ai-train=no` by the Content Signals policy: case means nothing, and each pair stands for itself."""
    pairs = (pair.partition("=") for pair in text.lower().split(","))
    return strictest(
        {name.strip(): _SIGNALS[value.strip()]}
        for name, _, value in pairs
        if name.strip() and value.strip() in _SIGNALS
    )


def strictest(statements: Iterable[Mapping[str, bool]]) -> dict[str, bool]:
    """Of several statements a single no is enough (draft-ietf-aipref-vocab, 5.1)."""
    merged: dict[str, bool] = {}
    for statement in statements:
        for name, allowed in statement.items():
            merged[name] = merged.get(name, True) and allowed
    return merged
