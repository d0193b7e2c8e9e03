"""`polite diff`: print which URLs two robots.txt files decide differently, and for which agents."""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from polite.cli import options as file
from polite.cli import stdin
from polite.cli import stdin as urls
from polite.cli.check import as_object
from polite.cli.options import unnamed_agent
from polite.cli.terminal import Exit
from polite.errors import InvalidURL, redact_url
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision
from polite.robots.parse import Bindings, parse
from polite.robots.rules import RuleSet

# The limit on agents named in the files that are compared; a message says if there are more.
_MAX_AGENTS = 1_000
_LONGEST_NAME = 128
_CHUNK = 65_536
# URLs, and their characters, that are compared for all agents at a time.
_BATCH = 10_000
_BATCH_SIZE = 4_194_304
_NAME = re.compile(r"[A-Za-z0-9_-]*[A-Za-z][A-Za-z0-9_-]*")
_WORDS = {True: "allowed", False: "disallowed"}


class _Change(NamedTuple):
    """A URL that the two files decide differently."""

    url: str
    before: Decision
    after: Decision


def diff(options: argparse.Namespace) -> Exit:
    """Print each changed decision. Return 1 if there are any, 2 if a URL is invalid."""
    old, new = (
        parse(file.read_octets(name), options.dialect).bindings() for name in (options.old, options.new)
    )
    agents = list(_agents(options, old, new))
    show = _as_json if options.json else _as_text
    status = Exit.ALLOWED
    reader = _Paths(urls.parse_lines(_lines(options.urls)))
    for paths in reader.batches():
        for name, change in _changes(paths, agents, old, new):
            print(show(name, change))
            status = Exit.DISALLOWED
    return Exit.USAGE if reader.invalid else status


class _Paths:
    """The URLs of a list with their paths, in batches.

    Attributes:
        invalid: whether a line so far was not a URL.
    """

    def __init__(self, listed: Iterable[str | InvalidURL]) -> None:
        self._listed = listed
        self.invalid = False

    def batches(self) -> Iterator[list[tuple[str, str]]]:
        batch: list[tuple[str, str]] = []
        size = 0
        for each in self._listed:
            try:
                url = urls.require_url(each)
                batch.append((url, url if url.startswith("/") else Target.of(url).path))
            except InvalidURL as error:
                print(f"polite: {error}", file=sys.stderr)
                self.invalid = True
                continue
            size += len(url)
            if len(batch) >= _BATCH or size >= _BATCH_SIZE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


def _changes(
    paths: Sequence[tuple[str, str]], agents: Iterable[tuple[str, UserAgent]], old: Bindings, new: Bindings
) -> Iterator[tuple[str, _Change]]:
    """Compare agent by agent: the rules of one may be megabytes. Agents of the same group share the result."""
    compared: tuple[RuleSet, RuleSet] | None = None
    changes: list[_Change] = []
    for name, agent in agents:
        before, after = old.rules_for(agent), new.rules_for(agent)
        if compared is None or compared[0] is not before or compared[1] is not after:
            compared = before, after
            changes = [] if before.repeats(after) else list(_changed(paths, before, after))
        yield from ((name, change) for change in changes)


def _changed(paths: Sequence[tuple[str, str]], before: RuleSet, after: RuleSet) -> Iterator[_Change]:
    for url, path in paths:
        if before.allows(path) != after.allows(path):
            yield _Change(url, before.decide(path), after.decide(path))


def _as_text(name: str, change: _Change) -> str:
    url, before, after = change
    return f"{_WORDS[before.allowed]} -> {_WORDS[after.allowed]}  {name}  {redact_url(url)}\n    was {before}\n    now {after}"


def _as_json(name: str, change: _Change) -> str:
    url, before, after = change
    was, now = as_object(url, before), as_object(url, after)
    canonical = was.pop("url")
    now.pop("url")
    return json.dumps({"url": canonical, "agent": name, "before": was, "after": now})


def _agents(options: argparse.Namespace, old: Bindings, new: Bindings) -> Iterator[tuple[str, UserAgent]]:
    """Yield the agents of --agent, or else all agents that the files name, and `*` for any other."""
    written = (found[0] for each in (old, new) for value in each.names() if (found := _NAME.match(value)))
    names = dict.fromkeys(map(str.lower, written))
    unnamed = "*", unnamed_agent(names)
    if options.agent:
        yield from (unnamed if agent is None else (str(agent), agent) for agent in options.agent)
        return
    listed = [name for name in names if len(name) <= _LONGEST_NAME]
    if len(listed) > _MAX_AGENTS:
        print(
            f"polite: the files name {len(listed)} agents; only the first {_MAX_AGENTS} are compared",
            file=sys.stderr,
        )
    yield from ((name, UserAgent(name)) for name in listed[:_MAX_AGENTS])
    yield unnamed


def _lines(name: str) -> Iterator[bytes]:
    if name == "-":
        yield from stdin.lines()
        return
    with Path(name).open("rb") as listed:
        yield from stdin.split(lambda: listed.read(_CHUNK))
