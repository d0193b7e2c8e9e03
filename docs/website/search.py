"""Orders the search index, so that a search for a public name or a command finds its entry first.

The search in the browser takes each word for the beginning of a name, in any case. It compares how many words the title has and
where, then the path, then the text; of equal ones, the first in the index wins. So each entry has its plain name first in all
three, and shorter names come first: `sign` before `Signals`.
"""

import re
from typing import Any

# A search for `polite.Decision` is one for `Decision`.
_PACKAGE = r"polite\.(?=\w)"
_API = re.compile(r"reference/api/[\w-]+\.html#(?P<within>polite(?:\.\w+)*)\.(?P<name>\w+)")
_COMMAND = re.compile(r"reference/cli\.html#polite-\w+")
_SOURCE = " Source code in <code>"
_ROOT_LEVEL = 2


def ordered(index: dict[str, Any]) -> dict[str, Any]:
    """Return the index with the entries of public names first, the shorter names before the longer.

    Args:
        index: What Zensical wrote to search.json: `config` and `items`, each with `location`, `level`, `title`, `text` and
            `path`.
    """
    config = index["config"] | {"separator": f"{_PACKAGE}|{index['config']['separator']}"}
    items = [_named(item) for item in sorted(index["items"], key=_rank)]
    return index | {"config": config, "items": items}


def _named(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item with its plain name first in title, path and text, and a field with its class; the source is left out."""
    if _COMMAND.fullmatch(item["location"]):
        return item | {"path": [item["title"], *item["path"]]}
    match = _API.fullmatch(item["location"])
    if match is None:
        return item
    name = match["name"]
    within = match["within"].removeprefix("polite").removeprefix(".")
    of_class = "" if item["level"] == _ROOT_LEVEL else f" <small>{within.rpartition('.')[2]}</small>"
    return item | {
        "title": name + of_class,
        "path": [f"{name} ({within})" if within else name, *item["path"]],
        "text": f"<code>{name}</code> {item['text'].partition(_SOURCE)[0]}",
    }


def _rank(item: dict[str, Any]) -> tuple[int, ...]:
    """Return the key for sorting: names by length, classes and functions before fields, and then by the length of the whole."""
    match = _API.fullmatch(item["location"])
    if match is None:
        return (1,)
    return (0, len(match["name"]), item["level"] != _ROOT_LEVEL, len(match["within"]))
