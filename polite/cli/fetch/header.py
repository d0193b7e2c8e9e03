"""--header: fields that are sent with each page request."""

import re
from collections.abc import Iterable

from polite.errors import InvalidOption

# RFC 9110, 5.6.2 and 5.5: a token; visible characters, spaces and tabs. Octets that are not ASCII have no known encoding.
_FIELD = re.compile(
    r"(?P<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}):[ \t]*(?P<value>[\x21-\x7e](?:[\t\x20-\x7e]{0,8190}[\x21-\x7e])?)[ \t]*"
)
# Fields that polite or its HTTP client sets, with the option that changes each.
_OURS = {
    "user-agent": "use --agent, whose name also selects the rules of robots.txt",
    **dict.fromkeys(("signature", "signature-agent", "signature-input"), "use --sign"),
    "if-none-match": "use --recrawl",
    "if-modified-since": "use --recrawl",
    "accept-encoding": "bodies are requested in gzip, and decoded",
    "host": "it is the URL's; --resolve names its address",
    **dict.fromkeys(
        ("connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
         "upgrade"),
        "it describes the message itself",
    ),
}  # fmt: skip
# What a site may not learn from another one's redirect, and what is written nowhere.
SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})


def header(text: str) -> tuple[str, str]:
    """Return name and value of `NAME: VALUE`. Raises InvalidOption, whose message does not show the value."""
    found = _FIELD.fullmatch(text)
    if found is None:
        name = text.partition(":")[0][:100]
        raise InvalidOption(
            f"--header must be 'NAME: VALUE' in ASCII without control characters, of at most 8192 octets, got {name!r}"
        )
    name = found["name"]
    if (why := _OURS.get(name.lower())) is not None:
        raise InvalidOption(f"--header cannot set {name}: {why}")
    return name, found["value"]


def merged(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the fields by name. Of two with one name the last counts: so a command line overrules its configuration."""
    kept: dict[str, tuple[str, str]] = {}
    for name, value in fields:
        kept[name.lower()] = name, value
    return dict(kept.values())


def without_secrets(fields: dict[str, str]) -> dict[str, str]:
    """Return the fields that another origin may get."""
    return {name: value for name, value in fields.items() if name.lower() not in SECRET}
