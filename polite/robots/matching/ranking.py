"""Ranking: the rules of one set in the order of precedence."""

from collections.abc import Sequence
from typing import NamedTuple

from polite.robots.matching.pattern import Grammar, Matcher, matches


class Ranking(NamedTuple):
    """The normal forms of the rules with a path, their places in the file and their precedences, the strongest first."""

    texts: Sequence[str]
    places: Sequence[int]
    precedences: Sequence[int]


class Match(NamedTuple):
    """A rule that matches: its precedence, odd for an Allow; what it matches; and its place in the file."""

    precedence: int
    matcher: Matcher
    place: int


class Reading(NamedTuple):
    """How rules and a path are read. Where two readings are equal, so are the verdicts.

    Attributes:
        path: in normal form.
        texts: the rules' paths in normal form, without the empty ones.
        precedences: of each of them, odd for an Allow.
        has_wildcards: whether any of them has one.
        plain_specials: whether an escape in any of them stands for a wildcard's plain character.
    """

    path: str
    texts: tuple[str, ...]
    precedences: tuple[int, ...]
    has_wildcards: bool
    plain_specials: bool


def ranking(paths: Sequence[str], marks: Sequence[int], grammar: Grammar, *, folders: bool) -> Ranking:
    """The longest first, then Allow, then the file's order: P1, P2 and RFC 9309, 2.2.2.

    `paths`: as the file has them. `marks`: odd for an Allow. `folders`: an Allow of an index page is one of its folder too.
    """
    places, texts, precedences = _read(paths, marks, grammar, folders=folders)
    # A stable sort, so the file's order stays.
    order = sorted(range(len(texts)), key=precedences.__getitem__, reverse=True)
    return Ranking(
        [texts[at] for at in order], [places[at] for at in order], [precedences[at] for at in order]
    )


def matching(
    paths: Sequence[str], marks: Sequence[int], grammar: Grammar, path: str, *, folders: bool
) -> list[Match]:
    """The rules that match a path in normal form, the strongest first. Looks at each rule once, and builds nothing."""
    places, texts, precedences = _read(paths, marks, grammar, folders=folders)
    # A hostile file says the same a thousand times.
    fitting = {text: _matcher(text, grammar, path) for text in dict.fromkeys(texts)}
    found = [
        Match(precedence, matcher, place)
        for place, text, precedence in zip(places, texts, precedences, strict=True)
        if (matcher := fitting[text]) is not None
    ]
    return sorted(found, key=lambda match: match.precedence, reverse=True)


def reading(
    paths: Sequence[str], marks: Sequence[int], grammar: Grammar, path: str, *, folders: bool
) -> Reading:
    """All that the verdict about a path depends on."""
    _, texts, precedences = _read(paths, marks, grammar, folders=folders)
    together = "".join(texts)
    return Reading(
        path,
        tuple(texts),
        tuple(precedences),
        grammar.has_wildcards and ("*" in together or "$" in together),
        grammar.plain_specials and "%2" in together,
    )


def _matcher(text: str, grammar: Grammar, path: str) -> Matcher | None:
    """What a rule matches, if the path is of it. Most rules differ in their head, which is cheap to see."""
    if not grammar.has_wildcards:
        plain = grammar.plain(text)
        return plain if path.startswith(plain) else None
    head, star, _ = text.partition("*")
    if not path.startswith(grammar.plain(head if star else head.removesuffix("$"))):
        return None
    matcher = grammar.matcher(text)
    return matcher if matches(matcher, path) else None


def _read(
    paths: Sequence[str], marks: Sequence[int], grammar: Grammar, *, folders: bool
) -> tuple[Sequence[int], Sequence[str], Sequence[int]]:
    """The places of the rules with a path, their paths in normal form and their precedences, in the order of the file."""
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
    return places, texts, precedences


def _readings(path: str, mark: int) -> tuple[str, ...]:
    """A path as written; and of an allowed index page its folder, and that alone."""
    folder, slash, page = path.rpartition("/")
    return (path, f"{folder}/$") if mark & 1 and slash and page.startswith("index.htm") else (path,)
