"""`polite diff`: print which URLs two robots.txt files decide differently, and for which agents."""

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from polite.cli import stdin
from polite.cli.check import as_object
from polite.cli.options import read_octets, unnamed_agent
from polite.cli.terminal import Exit, complain
from polite.errors import InvalidURL, redact_url
from polite.origin import Target
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision
from polite.robots.parse import Bindings, parse
from polite.robots.rules import RuleSet

# The limit on agents named in the files that are compared; a message says if there are more.
_MAX_AGENTS = 1_000
_LONGEST_NAME = 128
# URLs, and their characters, that are compared for all agents at a time.
_BATCH = 10_000
_BATCH_SIZE = 4_194_304
_NAME = re.compile(r"[A-Za-z0-9_-]*[A-Za-z][A-Za-z0-9_-]*")
_WORDS = {True: "allowed", False: "disallowed"}


# A URL that the two files decide differently, and both decisions.
_Change: TypeAlias = tuple[str, Decision, Decision]


def diff(options: argparse.Namespace) -> Exit:
    """Print each changed decision. Return 1 if there are any, 2 if a URL is invalid."""
    old, new = (parse(read_octets(name), options.dialect).bindings() for name in (options.old, options.new))
    agents = list(_agents(options, old, new))
    status, invalid = Exit.ALLOWED, False
    batch: list[tuple[str, str]] = []
    size = 0
    # None is the end.
    for line in chain(stdin.lines(options.urls), [None]):
        if line is not None and stdin.is_comment(line):
            continue
        if line is not None:
            try:
                url = stdin.require_url(stdin.parse_line(line))
                batch.append((url, url if url.startswith("/") else Target.of(url).path))
                size += len(url)
            except InvalidURL as error:
                complain(str(error))
                invalid = True
        if line is None or len(batch) >= _BATCH or size >= _BATCH_SIZE:
            for name, change in _changes(batch, agents, old, new):
                print(_shown(name, *change, as_json=options.json))
                status = Exit.DISALLOWED
            batch, size = [], 0
    return Exit.USAGE if invalid else status


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
            changes = [
                (url, before.decide(path), after.decide(path))
                for url, path in (() if before.repeats(after) else paths)
                if before.allows(path) != after.allows(path)
            ]
        yield from ((name, change) for change in changes)


def _shown(name: str, url: str, before: Decision, after: Decision, *, as_json: bool) -> str:
    if not as_json:
        words = f"{_WORDS[before.allowed]} -> {_WORDS[after.allowed]}"
        return f"{words}  {name}  {redact_url(url)}\n    was {before}\n    now {after}"
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
        complain(f"the files name {len(listed)} agents; only the first {_MAX_AGENTS} are compared")
    yield from ((name, UserAgent(name)) for name in listed[:_MAX_AGENTS])
    yield unnamed
