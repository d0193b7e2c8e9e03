"""`polite diff`: which URLs two robots.txt decide differently, for whom; by effect and not by text."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from polite.cli import file, stdin, urls
from polite.cli.answer import as_object
from polite.cli.exits import Exit
from polite.errors import InvalidURL, shown
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.parse import Robots, parse
from polite.robots.rules import Decision, RuleSet

# Names in a file: more are not compared, which is said.
_MOST_AGENTS = 1_000
_LONGEST_NAME = 128
_CHUNK = 65_536
_NAME = re.compile(r"[A-Za-z0-9_-]*[A-Za-z][A-Za-z0-9_-]*")
_WORDS = {True: "allowed", False: "disallowed"}


class _Compared(NamedTuple):
    """How an agent is called, and the rules that bind it in the old file and in the new one."""

    name: str
    old: RuleSet
    new: RuleSet


def diff(options: argparse.Namespace) -> Exit:
    """Print each change of a verdict; 1 when there are any, 2 when a URL was none."""
    old, new = (parse(file.octets(name), options.dialect) for name in (options.old, options.new))
    compared = [
        _Compared(name, old.rules_for(agent), new.rules_for(agent))
        for name, agent in _agents(options, old, new)
    ]
    status = Exit.ALLOWED
    for url in urls.each(_lines(options.urls)):
        try:
            status = max(status, _show(urls.valid(url), compared, as_json=options.json))
        except InvalidURL as error:
            print(f"polite: {error}", file=sys.stderr)
            status = Exit.USAGE
    return status


def _show(url: str, compared: Sequence[_Compared], *, as_json: bool) -> Exit:
    path = url if url.startswith("/") else Target.of(url).path
    changed = Exit.ALLOWED
    for name, old, new in compared:
        before, after = old.decide(path), new.decide(path)
        if before.allowed != after.allowed:
            changed = Exit.DISALLOWED
            print(_as_json(url, name, before, after) if as_json else _as_text(url, name, before, after))
    return changed


def _as_text(url: str, name: str, before: Decision, after: Decision) -> str:
    return f"{_WORDS[before.allowed]} -> {_WORDS[after.allowed]}  {name}  {shown(url)}\n    was {before}\n    now {after}"


def _as_json(url: str, name: str, before: Decision, after: Decision) -> str:
    was, now = as_object(url, before), as_object(url, after)
    canonical = was.pop("url")
    now.pop("url")
    return json.dumps({"url": canonical, "agent": name, "before": was, "after": now})


def _agents(options: argparse.Namespace, old: Robots, new: Robots) -> Iterator[tuple[str, UserAgent]]:
    """Those asked for; else all that one of the files names, and somebody whom neither does, who is called `*`."""
    written = (value for robots in (old, new) for group in robots.groups for value in group.agents)
    names = dict.fromkeys(found[0].lower() for value in written if (found := _NAME.match(value)))
    nobody = "*", UserAgent("nobody", tokens=(_unnamed(names),))
    if options.agent:
        yield from (nobody if agent is None else (str(agent), agent) for agent in options.agent)
        return
    honest = [name for name in names if len(name) <= _LONGEST_NAME]
    if len(honest) > _MOST_AGENTS:
        said = f"{len(honest)} agents are named: the first {_MOST_AGENTS} are compared"
        print(f"polite: {said}", file=sys.stderr)
    yield from ((name, UserAgent(name)) for name in honest[:_MOST_AGENTS])
    yield nobody


def _unnamed(names: dict[str, None]) -> str:
    """A name that no group is for."""
    return "x" * (1 + max(map(len, names), default=0))


def _lines(name: str) -> Iterator[bytes]:
    if name == "-":
        yield from stdin.lines()
        return
    with Path(name).open("rb") as listed:
        yield from stdin.split(lambda: listed.read(_CHUNK))
