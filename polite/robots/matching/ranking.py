"""Ranking: the rules of one rule set in the order of precedence."""

from collections.abc import Sequence
from typing import NamedTuple

from polite.robots.dialect import let_threads_switch
from polite.robots.matching.pattern import Grammar, Matcher, matches


class Ranking(NamedTuple):
    """The rules with a path, the strongest first.

    Attributes:
        texts: the normal forms.
        positions: the positions of the rules in the file.
    """

    texts: Sequence[str]
    positions: Sequence[int]


class Match(NamedTuple):
    """A rule that matches a path.

    Attributes:
        precedence: odd for an Allow.
        matcher: what the rule matches.
        position: the position of the rule in the file.
    """

    precedence: int
    matcher: Matcher
    position: int


class Reading(NamedTuple):
    """Rules and a path as a dialect reads them. Equal readings give equal verdicts.

    Attributes:
        path: the path in normal form.
        texts: the rules' paths in normal form, without empty ones.
        precedences: the precedence of each of them, odd for an Allow.
        has_wildcards: whether any of them has a wildcard.
        plain_specials: whether any of them has an escaped `*` or `$`.
    """

    path: str
    texts: tuple[str, ...]
    precedences: tuple[int, ...]
    has_wildcards: bool
    plain_specials: bool


def ranking(paths: Sequence[str], marks: Sequence[int], grammar: Grammar) -> Ranking:
    """Sort rules: the longest first, then Allow, then the order of the file.

    P1, P2 and RFC 9309, 2.2.2.

    Args:
        paths: the rules' paths as written.
        marks: for each rule a number that is odd for an Allow.
        grammar: how the dialect reads paths.
    """
    positions, texts, precedences = _read(paths, marks, grammar)
    let_threads_switch()
    # The sort is stable, so rules of equal precedence stay in the order of the file.
    order = sorted(range(len(texts)), key=precedences.__getitem__, reverse=True)
    let_threads_switch()
    # A range is its own positions. `map` takes half the time of a comprehension.
    ranked = order if isinstance(positions, range) else list(map(positions.__getitem__, order))
    return Ranking(list(map(texts.__getitem__, order)), ranked)


def matching(paths: Sequence[str], marks: Sequence[int], grammar: Grammar, path: str) -> list[Match]:
    """Return the rules that match a path in normal form, the strongest first.

    Tries each rule once and builds no index. Takes the arguments of `ranking`.
    """
    positions, texts, precedences = _read(paths, marks, grammar)
    # A hostile file may repeat one rule a thousand times.
    fitting = {text: _matcher(text, grammar, path) for text in dict.fromkeys(texts)}
    found = [
        Match(precedence, matcher, position)
        for position, text, precedence in zip(positions, texts, precedences, strict=True)
        if (matcher := fitting[text]) is not None
    ]
    return sorted(found, key=lambda match: match.precedence, reverse=True)


def reading(paths: Sequence[str], marks: Sequence[int], grammar: Grammar, path: str) -> Reading:
    """Return all that the verdict about a path in normal form depends on."""
    _, texts, precedences = _read(paths, marks, grammar)
    together = "".join(texts)
    return Reading(
        path,
        tuple(texts),
        tuple(precedences),
        grammar.has_wildcards and ("*" in together or "$" in together),
        grammar.plain_specials and "%2" in together,
    )


def _matcher(text: str, grammar: Grammar, path: str) -> Matcher | None:
    """Return what a rule matches, if the path is matched. Compares heads first, which is cheap."""
    let_threads_switch()
    if not grammar.has_wildcards:
        plain = grammar.plain(text)
        return plain if path.startswith(plain) else None
    head, star, _ = text.partition("*")
    if not path.startswith(grammar.plain(head if star else head.removesuffix("$"))):
        return None
    matcher = grammar.matcher(text)
    return matcher if matches(matcher, path) else None


def _read(
    paths: Sequence[str], marks: Sequence[int], grammar: Grammar
) -> tuple[Sequence[int], Sequence[str], Sequence[int]]:
    """Return the rules with a path: positions, normal forms and precedences, in file order."""
    positions: Sequence[int] = range(len(paths))
    if "" in paths:
        positions = [position for position in positions if paths[position]]
        paths = [path for path in paths if path]
    if grammar.rereads(paths):
        read = [
            (p, reading)
            for p, path in zip(positions, paths, strict=True)
            for reading in grammar.readings(path, allows=marks[p] & 1 == 1)
        ]
        positions, paths = [position for position, _ in read], [reading for _, reading in read]
    let_threads_switch()
    texts = grammar.normals(paths)
    let_threads_switch()
    lengths = grammar.octets(texts)
    if not isinstance(positions, range):
        marks = list(map(marks.__getitem__, positions))
    precedences = [2 * length + (mark & 1) for length, mark in zip(lengths, marks, strict=True)]
    return positions, texts, precedences
