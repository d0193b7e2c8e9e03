"""Ranking: the rules of one set in the order of precedence."""

from collections.abc import Sequence
from typing import NamedTuple

from polite.robots.pattern import Grammar


class Ranking(NamedTuple):
    """The normal forms of the rules with a path, their places in the file and their precedences, the strongest first."""

    texts: Sequence[str]
    places: Sequence[int]
    precedences: Sequence[int]


def ranking(paths: Sequence[str], marks: Sequence[int], grammar: Grammar, *, folders: bool) -> Ranking:
    """The longest first, then Allow, then the file's order: P1, P2 and RFC 9309, 2.2.2.

    `paths`: as the file has them. `marks`: odd for an Allow. `folders`: an Allow of an index page is one of its folder too.
    """
    places: Sequence[int] = range(len(paths))
    if "" in paths:
        places = [place for place in places if paths[place]]
        paths = [path for path in paths if path]
    if folders and "index.htm" in "\n".join(paths):
        read = [
            (p, reading)
            for p, path in zip(places, paths, strict=True)
            for reading in _readings(path, marks[p])
        ]
        places, paths = [place for place, _ in read], [reading for _, reading in read]
    texts = grammar.normals(paths)
    lengths = grammar.octets(texts)
    precedences = [2 * length + (marks[place] & 1) for place, length in zip(places, lengths, strict=True)]
    # A stable sort, so the file's order stays.
    order = sorted(range(len(texts)), key=precedences.__getitem__, reverse=True)
    return Ranking(
        [texts[at] for at in order], [places[at] for at in order], [precedences[at] for at in order]
    )


def _readings(path: str, mark: int) -> tuple[str, ...]:
    """A path as written; and of an allowed index page its folder, and that alone."""
    folder, slash, page = path.rpartition("/")
    return (path, f"{folder}/$") if mark & 1 and slash and page.startswith("index.htm") else (path,)
