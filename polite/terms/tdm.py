"""TDMRep (W3C community group, final report of 10 May 2024): reservations of text and data mining."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from polite.robots.dialect import RFC9309, Dialect
from polite.robots.lines import octets
from polite.robots.pattern import grammar

TDM_PATH = "/.well-known/tdmrep.json"
# Octets and rules that are read: far more than any honest file has.
TDM_LIMIT = 524_288
_MOST_RULES = 10_000
_LONGEST_LOCATION = 4_096
_SHOWN = 200
_BEFORE_PATH = re.compile(r"^https?://[^/]*+", re.IGNORECASE)


class Reservation(NamedTuple):
    """A value of tdm-reservation (TDMRep, 5.1).

    Attributes:
        reserved: whether the rights are reserved.
        careful: the value is not exactly 0 or 1, but means that they are reserved.
    """

    reserved: bool
    careful: bool = False


class TdmRule(NamedTuple):
    """One rule of a TDM file.

        >>> from polite import parse_tdm_file
        >>> rule, = parse_tdm_file(b'[{"location": "/a/", "tdm-reservation": 1}]').rules
        >>> rule.location, rule.reserved, rule.number
        ('/a/', True, 1)

    Attributes:
        location: the pattern of paths as written, with `*` and `$` as in robots.txt.
        reserved: whether the rights to mine these pages are reserved.
        policy: the URL of a policy as written, or None.
        number: its place in the file, 1-based; 0 for what stands for a file that could not be read.
        careful: it is no rule by the letter, but means that the rights are reserved.
    """

    location: str
    reserved: bool
    policy: str | None
    number: int
    careful: bool = False

    def __str__(self) -> str:
        return f'{{"location": "{self.location[:_SHOWN]}", "tdm-reservation": {int(self.reserved)}}}'


class TdmFile:
    """The rules of a site's `/.well-known/tdmrep.json` (TDMRep, 6.2), for any path. Immutable.

        >>> from polite import parse_tdm_file
        >>> file = parse_tdm_file(b'[{"location": "/images/*.jpg", "tdm-reservation": 0}, {"location": "/", "tdm-reservation": 1}]')
        >>> file.at("/images/a.jpg").reserved, file.at("/about").reserved
        (False, True)

    Attributes:
        rules: in the order of the file.
        problem: why the file, or a part of it, could not be read; None if there is none.
    """

    __slots__ = ("_grammar", "_ranked", "problem", "rules")

    def __init__(
        self, rules: Iterable[TdmRule] = (), problem: str | None = None, *, dialect: Dialect = RFC9309
    ) -> None:
        self.rules: tuple[TdmRule, ...] = tuple(rules)
        self.problem: str | None = problem
        self._grammar = grammar(dialect)
        self._ranked = [(self._grammar.pattern(_raw(rule.location)), rule) for rule in self.rules]

    def at(self, path: str) -> TdmRule | None:
        """Return the rule for a path with query: the first that matches (TDMRep, 6.2), or None."""
        normal = self._grammar.path(path)
        return next((rule for pattern, rule in self._ranked if pattern.matches(normal)), None)

    def __repr__(self) -> str:
        return f"<TdmFile: {len(self.rules)} rules{f', {self.problem}' if self.problem else ''}>"


def reserved_whole(problem: str) -> TdmFile:
    """Return what stands for a file that may reserve something, and could not be read: all is reserved."""
    return TdmFile([TdmRule("/", True, None, 0, careful=True)], problem)  # noqa: FBT003


def parse_tdm_file(body: bytes) -> TdmFile:
    """Read a TDM file. Never raises on content.

    What is no JSON, such as a page that a server sends for any path, has no rules: the site does not use the protocol (6.2).
    JSON that is cut short, broken or too large reserves everything that no rule before it decides about.

        >>> parse_tdm_file(b"<html>No such page").problem
        'no list of rules'

    Args:
        body: the file. Only the first TDM_LIMIT octets count.
    """
    text = body[: TDM_LIMIT + 1].decode("utf-8-sig", "replace").lstrip(" \t\r\n")
    if text[:1] not in {"[", "{"}:
        return TdmFile(problem="no list of rules")
    if len(body) > TDM_LIMIT:
        return reserved_whole(f"more than {TDM_LIMIT} octets")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return reserved_whole("broken JSON")
    if isinstance(found, dict):
        # One rule without the brackets that make it a list (6.2.2): what it permits does not count.
        return TdmFile((rule for rule in _rules([found]) if rule.reserved), "no list of rules")
    rules = list(_rules(found[:_MOST_RULES]))
    if len(found) > _MOST_RULES:
        rules.append(TdmRule("/", True, None, 0, careful=True))  # noqa: FBT003
        return TdmFile(rules, f"more than {_MOST_RULES} rules")
    return TdmFile(rules)


def reservation_in(values: Iterable[str]) -> Reservation | None:
    """Return the reservation that headers or meta elements of one page state, or None.

    A value other than 0 and 1 is as none (5.1). Of several values a single 1 is enough.
    """
    said = [each.strip(" \t\"'") for value in values for each in value.split(",")]
    if "1" in said:
        return Reservation(True, careful=said != ["1"] * len(said))  # noqa: FBT003
    return Reservation(False) if said and said == ["0"] * len(said) else None  # noqa: FBT003


def _rules(entries: Iterable[object]) -> Iterator[TdmRule]:
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            continue
        location, policy = entry.get("location"), entry.get("tdm-policy")
        reservation = _reservation(entry.get("tdm-reservation"))
        if reservation is None:
            continue
        reserved, careful = reservation
        if not isinstance(location, str) or len(location) > _LONGEST_LOCATION:
            if not reserved:
                continue
            location, careful = "/", True
        yield TdmRule(location, reserved, policy if isinstance(policy, str) else None, number, careful)


def _reservation(value: object) -> Reservation | None:
    if isinstance(value, int) and not isinstance(value, bool) and value in {0, 1}:
        return Reservation(value == 1)
    # A string, a float or true, which sites write for 1.
    return Reservation(True, careful=True) if value == 1 or value == "1" else None  # noqa: FBT003


def _raw(location: str) -> str:
    """Return a location as a rule's path, one character per octet. Some sites write a whole URL, or no slash."""
    path = _BEFORE_PATH.sub("", location).partition("#")[0]
    return octets(path if path[:1] in {"/", "*"} else f"/{path}").decode("latin-1")
