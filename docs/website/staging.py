"""Copies the sources for the builder: the same lines, with links that work on the site."""

import posixpath
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from docs.website.sources import Sources

# A code span first, so that nothing in it is taken for a link. The target of a link stands on one line.
_SPAN_OR_LINK = re.compile(r"(?P<span>(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))|\]\((?P<target>[^()\s]+)\)")
_FENCE = re.compile(r" *(```+|~~~+)")
_COMMENT = re.compile(r"<!--.*-->")


class LinkError(Exception):
    """A page links to something that is not on the site."""


def stage(sources: Sources, folder: Path) -> list[str]:
    """Write every page and asset below `folder`, and return a message for each link that leads nowhere."""
    shutil.rmtree(folder, ignore_errors=True)
    broken = []
    for name, place in (sources.pages | sources.listings).items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        try:
            text = staged(sources, name)
        except LinkError as error:
            broken.append(str(error))
        else:
            (folder / place).write_text(text)
    for name, place in sources.assets.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sources.root / name, folder / place)
    return broken


def staged(sources: Sources, name: str) -> str:
    """Return a page's text as the site has it.

    Links lead to pages of the site. Comments, which tell the tests how to run an example, are blank lines. So every line
    keeps its number, and a message of the builder names the line of the source.

    Raises:
        LinkError: A link leads to no file, or to a file that is not on the site.
    """
    return "".join(_lines(sources, name))


def _lines(sources: Sources, name: str) -> Iterator[str]:
    fence = ""
    for number, line in enumerate(sources.text(name).splitlines(keepends=True), 1):
        opened = _FENCE.match(line)
        if fence or opened:
            yield line
            if not fence and opened:
                fence = opened[1]
            elif line.strip().startswith(fence) and not line.strip(" \n`~"):
                fence = ""
        elif _COMMENT.fullmatch(line.strip()):
            yield "\n"
        else:
            yield _SPAN_OR_LINK.sub(partial(_rewritten, sources, name, number), line)


def _rewritten(sources: Sources, name: str, line: int, match: re.Match[str]) -> str:
    target = match["target"]
    if match["span"] or target.startswith("#") or re.match(r"[a-z][a-z0-9+.-]*:", target):
        return match[0]
    path, mark, fragment = target.partition("#")
    linked = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
    place = sources.place(linked)
    if place is None:
        where = "is not on the site" if (sources.root / linked).exists() else "does not exist"
        raise LinkError(f"{name}:{line}: link to {target}: {linked} {where}")
    here = posixpath.dirname(sources.place(name) or "") or "."
    return f"]({posixpath.relpath(place, here)}{mark}{fragment})"
