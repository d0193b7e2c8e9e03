"""Parameters (RFC 9110, 5.6.6): `name=value` and `name="value"`, as Link and WWW-Authenticate have them."""

import re

# A token of RFC 9110, 5.6.2.
WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
# Possessive repeats (*+, ++, ?+) keep each match linear. White space around `=` is bad, and to be accepted (RFC 9110, 11.2).
QUOTED = r'"(?:[^"\\]|\\.)*+"'
PARAMETER = rf"{WORD}(?:[ \t]*+=[ \t]*+(?:{QUOTED}|[^ \t\",;]*+))?+"
_NAME_AND_VALUE = re.compile(rf"({WORD})(?:[ \t]*+=[ \t]*+({QUOTED}|[^ \t\",;]*+))?+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def first_of_each(text: str) -> dict[str, str]:
    """Return the parameters in a text of nothing else, with their names in lower case; of equal names the first.

    >>> first_of_each('; rel="license"; type=text/html; rel=next')
    {'rel': 'license', 'type': 'text/html'}
    """
    found: dict[str, str] = {}
    for name, value in _NAME_AND_VALUE.findall(text):
        found.setdefault(name.lower(), unquoted(value))
    return found


def unquoted(value: str) -> str:
    """Return the text of a token or of a quoted string."""
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value
