"""`polite explain`: everything that decides about one URL."""

import argparse
import asyncio

from polite.cli.answer import exit_for
from polite.cli.exits import Exit
from polite.cli.file import rules
from polite.cli.gate import gate
from polite.errors import shown
from polite.robots.parse import Robots
from polite.robots.rules import Decision


def explain(options: argparse.Namespace) -> Exit:
    """Print the explanation; gives the exit status of its decision."""
    robots = rules(options)
    decision = asyncio.run(_by_site(options)) if robots is None else _by_file(robots, options)
    for rule in decision.overruled:
        print(f"  overruled: {rule}")
    return exit_for(decision)


async def _by_site(options: argparse.Namespace) -> Decision:
    async with gate(options) as asking:
        explanation = await asking.explain(options.url)
    print(explanation)
    return explanation.decision


def _by_file(robots: Robots, options: argparse.Namespace) -> Decision:
    decision, bound = robots.decide(options.agent, options.url), robots.rules_for(options.agent)
    delay = "none" if bound.crawl_delay is None else f"{bound.crawl_delay:g} s"
    print(shown(options.url))
    print(f"  {decision}")
    print(f"  group: {bound.group or 'none'}; Crawl-delay: {delay}")
    return decision
