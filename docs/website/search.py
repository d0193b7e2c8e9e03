"""Orders the search index, so that a search for a public name finds its entry first.

The search in the browser compares where a word stands in the title, then in the path, then in the text, and the earlier
place wins. A field `decision` would come before `polite.Decision`, and nothing would tell of which class it is.
"""

import re
from typing import Any

# The path of an entry begins with the name of its class. A search for `polite.Decision` is one for `Decision`.
_PACKAGE = r"polite\.(?=\w)"
_API = re.compile(r"reference/api/\w[\w-]*\.html#(?P<name>polite\.[\w.]+)")
_SOURCE = " Source code in <code>"
_ROOT_LEVEL = 2


def ordered(index: dict[str, Any]) -> dict[str, Any]:
    """Return the index with the entries of public names first, the shorter names before the longer.

    Args:
        index: What Zensical wrote to search.json: `config` and `items`, each with `location`, `level`, `title`, `text` and
            `path`.
    """
    config = index["config"] | {"separator": f"{_PACKAGE}|{index['config']['separator']}"}
    items = sorted(map(_named, index["items"]), key=_rank)
    return index | {"config": config, "items": items}


def _named(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its full name first in its path, and a class also in its text; the source is left out."""
    match = _API.fullmatch(item["location"])
    if match is None:
        return item
    name, text = match["name"], item["text"].partition(_SOURCE)[0]
    if item["level"] == _ROOT_LEVEL:
        return item | {"path": [name, *item["path"]], "text": f"<code>{name}</code> {text}"}
    return item | {"path": [name.rpartition(".")[0], *item["path"]], "text": text}


def _rank(item: dict[str, Any]) -> tuple[bool, int]:
    """Return the key for sorting. Only what is equal otherwise is told apart by the order."""
    match = _API.fullmatch(item["location"])
    public = match is not None and item["level"] == _ROOT_LEVEL
    return (not public, len(match["name"]) if match and public else 0)
