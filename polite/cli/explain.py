"""`polite explain`: everything that decides about one URL, beside the lines of the file that it comes from."""

import argparse
import asyncio
from collections.abc import Iterator
from itertools import islice

from polite.cli import file
from polite.cli.exit_codes import Exit
from polite.cli.gate import gate
from polite.cli.options import spoken
from polite.cli.url_report import exit_for
from polite.errors import redact_url
from polite.robots.decision import Decision
from polite.robots.fetching.result import Found
from polite.robots.lines import readable, rows
from polite.robots.parse import Robots, parse
from polite.robots.trace import DecisionTrace

# Lines of the file that are shown: of more matching rules nobody reads the rest.
_MOST_SHOWN = 60


def explain(options: argparse.Namespace) -> Exit:
    """Print the explanation; gives the exit status of its decision."""
    return exit_for(asyncio.run(_by_site(options)) if options.robots is None else _by_file(options))


async def _by_site(options: argparse.Namespace) -> Decision:
    async with gate(options) as asking:
        explanation = await asking.explain(options.url)
    print(spoken(str(explanation)))
    access = explanation.snapshot.access
    if isinstance(access, Found):
        _show(parse(access.body, options.dialect), access.body, options)
    return explanation.decision


def _by_file(options: argparse.Namespace) -> Decision:
    body = file.octets(options.robots)
    robots = parse(body, options.dialect)
    decision, bound = robots.decide(options.agent, options.url), robots.rules_for(options.agent)
    print(redact_url(options.url))
    print(f"  {decision}")
    print(f"  Crawl-delay: {'none' if bound.crawl_delay is None else f'{bound.crawl_delay:g} s'}")
    _show(robots, body, options)
    return decision


def _show(robots: Robots, body: bytes, options: argparse.Namespace) -> None:
    explained = robots.explain(options.agent, options.url)
    # Its first line is the decision, which has been told.
    for text in str(explained).splitlines()[1:]:
        print(f"  {text}")
    for text in _excerpt(explained, rows(body, options.dialect)):
        print(f"  {text}")


def _excerpt(explained: DecisionTrace, texts: list[str]) -> Iterator[str]:
    """The lines that had a part in it, numbered; the deciding one is marked."""
    names = {number for group in explained.groups for number in group.lines}
    numbers = sorted(names | {match.rule.line for match in explained.matches})
    decided = explained.winner.rule.line if explained.winner else 0
    for number in islice(numbers, _MOST_SHOWN):
        yield f"{'>' if number == decided else ' '} {number:5} | {redact_url(readable(texts[number - 1]))}"
    if len(numbers) > _MOST_SHOWN:
        yield f"  and {len(numbers) - _MOST_SHOWN} more"
