"""The meta elements of a page, as far as a crawler obeys them: names and contents."""

import re
from collections.abc import Iterator
from html import unescape

# Octets, or characters, of a page that are read: the head of any honest page is well within.
HTML_LIMIT = 131_072

# HTML, 13.2.5: what the tokenizer takes as one piece, or the rest of a page that ends inside a piece. Each alternative consumes
# what it starts with, so a page is read once. Quotes hide a > in a value only, after an equals sign.
_VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^ \t\n\f\r>"'][^ \t\n\f\r>]*+)"""
_NAME = r"=?+[^ \t\n\f\r/>=]++"
_ATTRIBUTE = rf"{_NAME}(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+{_VALUE}?+)?+"
_NAME_AND_VALUE = re.compile(rf"({_NAME})(?:[ \t\n\f\r]*+=[ \t\n\f\r]*+({_VALUE})?+)?+")
_TAG = rf"[a-zA-Z][^ \t\n\f\r/>]*+(?:[ \t\n\f\r/]++|{_ATTRIBUTE}|=)*+"
_PIECE = re.compile(
    rf"(?:[^<]|<(?![a-zA-Z/!?]))++|<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+(?:>|\Z)|</{_TAG}(?:>|\Z)|</[^>]*+(?:>|\Z)"
    rf"|<(?=(?P<name>[a-zA-Z]++))(?P<tag>{_TAG})(?P<end>>|\Z)",
    re.DOTALL,
)
_RAW_TEXT_END = {
    name: re.compile(rf"</{name}(?=[ \t\n\f\r/>])", re.IGNORECASE) for name in ("script", "style")
}
_NAME_END = frozenset(" \t\n\f\r/>")


def metas(html: bytes | str | None) -> Iterator[tuple[str, str]]:
    """Iterate over (name in lower case, content) of the meta elements that have both, in the first HTML_LIMIT octets.

    Never raises on content.
    """
    # All of them: pages of journals have an element for each reference, and the one for crawlers may come last.
    for attributes in _meta_tags(_text(html[:HTML_LIMIT]) if html else ""):
        if "content" not in attributes.lower():
            continue
        found = {"name": "", "content": ""}
        # Of an attribute given twice the first counts (HTML, 13.2.5.33).
        for name, value in reversed(_NAME_AND_VALUE.findall(attributes)):
            if len(name) in (4, 7) and (name := name.lower()) in found:
                found[name] = value
        name, content = (
            unescape(value[1:-1] if value[:1] in {'"', "'"} else value) for value in found.values()
        )
        if name and content:
            yield name.strip().lower(), content


def _meta_tags(text: str) -> Iterator[str]:
    """Iterate over the attributes of meta elements.

    Skips scripts, styles, comments and cut tags.
    """
    position = 0
    while position < len(text) and (piece := _PIECE.match(text, position)):
        position = piece.end()
        tag = piece["tag"]
        if not tag or not piece["end"]:
            continue
        name = piece["name"].lower()
        if text[piece.start() + 1 + len(name)] not in _NAME_END:
            continue
        if name == "meta":
            yield tag[len(name) :]
        elif name in _RAW_TEXT_END and not tag.endswith("/"):
            end = _RAW_TEXT_END[name].search(text, position)
            position = end.start() if end else len(text)


def _text(html: bytes | str) -> str:
    """Decode a page. Names and directives are ASCII, so any encoding that keeps ASCII will do."""
    if isinstance(html, str):
        return html
    return html.decode("utf-16" if html[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8", "replace")
