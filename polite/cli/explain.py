"""`polite explain`: print everything that decides about one URL, with the lines of robots.txt."""

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from polite.cli import file
from polite.cli.exit_codes import Exit
from polite.cli.gate import open_gate_for
from polite.cli.option_names import command_line_text
from polite.cli.url_report import exit_for
from polite.errors import redact_url
from polite.robots.decision import Decision
from polite.robots.dialect import BY_NAME
from polite.robots.fetching.result import Found
from polite.robots.lines import readable, rows
from polite.robots.parse import Robots, parse
from polite.robots.trace import DecisionTrace
from polite.robots.usage import Usage, usage

# The limit on lines of robots.txt that are printed.
_MAX_LINES = 60
_MAX_LICENSES = 10


def explain(options: argparse.Namespace) -> Exit:
    """Print the explanation. Return the exit status of its decision."""
    return exit_for(asyncio.run(_by_site(options)) if options.robots is None else _by_file(options))


async def _by_site(options: argparse.Namespace) -> Decision:
    async with open_gate_for(options) as gate:
        explanation = await gate.explain(options.url)
    print(command_line_text(str(explanation)))
    access = explanation.snapshot.access
    if isinstance(access, Found):
        _show(parse(access.body, options.dialect), access.body, options)
    return explanation.decision


def _by_file(options: argparse.Namespace) -> Decision:
    body = file.read_octets(options.robots)
    robots = parse(body, options.dialect)
    decision, bound = robots.decide(options.agent, options.url), robots.rules_for(options.agent)
    print(redact_url(options.url))
    print(f"  {decision}")
    print(f"  Crawl-delay: {'none' if bound.crawl_delay is None else f'{bound.crawl_delay:g} s'}")
    _show(robots, body, options)
    return decision


def _show(robots: Robots, body: bytes, options: argparse.Namespace) -> None:
    explained = robots.explain(options.agent, options.url)
    # The first line is the decision, which is printed already. Fields of a dialect are Python names, and no options.
    for text in str(replace(explained, sensitive_to=())).splitlines()[1:]:
        print(f"  {text}")
    for name in _opposed(explained, body, options):
        print(f"  dialect: --dialect {name} would reverse this decision")
    for text in _excerpt(explained, rows(body, options.dialect)):
        print(f"  {text}")
    for text in _uses(usage((), robots, options.agent, options.url)):
        print(f"  {text}")


def _uses(said: Usage) -> Iterator[str]:
    """Yield what robots.txt says of the use of the page, refusals first."""
    yield from (f"use: {statement}" for statement in islice(said.statements, _MAX_LINES))
    if len(said.statements) > _MAX_LINES:
        yield f"and {len(said.statements) - _MAX_LINES} more uses"
    yield from (f"licence: {redact_url(url)} (line {line})" for url, line in said.licenses[:_MAX_LICENSES])
    if len(said.licenses) > _MAX_LICENSES:
        yield f"and {len(said.licenses) - _MAX_LICENSES} more licences"


def _opposed(explained: DecisionTrace, body: bytes, options: argparse.Namespace) -> Iterator[str]:
    """Yield the dialects that decide otherwise. A file is read again only if the decision depends on the dialect at all."""
    if not explained.sensitive_to:
        return
    for each in BY_NAME.values():
        if each != options.dialect:
            decision = parse(body, each).decide(options.agent, options.url)
            if decision.allowed != explained.decision.allowed:
                yield each.name


def _excerpt(explained: DecisionTrace, texts: list[str]) -> Iterator[str]:
    """Yield the lines of the group and of matching rules, numbered; `>` marks the deciding one."""
    names = {number for group in explained.groups for number in group.lines}
    numbers = sorted(names | {match.rule.line for match in explained.matches})
    decided = explained.winner.rule.line if explained.winner else 0
    for number in islice(numbers, _MAX_LINES):
        yield f"{'>' if number == decided else ' '} {number:5} | {redact_url(readable(texts[number - 1]))}"
    if len(numbers) > _MAX_LINES:
        yield f"  and {len(numbers) - _MAX_LINES} more"
