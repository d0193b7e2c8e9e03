"""`polite explain`: everything that decides about one URL."""

import argparse
import asyncio

import polite
from polite.cli.check import exit_for
from polite.cli.exits import Exit
from polite.cli.gate import gate, rules


def explain(options: argparse.Namespace) -> Exit:
    """Print the explanation; gives the exit status of its decision."""
    robots = rules(options)
    if robots is None:
        return asyncio.run(_explain_live(options))
    bound = robots.rules_for(options.agent)
    decision = robots.decide(options.agent, options.url)
    print(polite.shown(options.url))
    print(f"  {decision}")
    print(f"  group: {bound.group or 'none'}; Crawl-delay: {bound.crawl_delay or 'none'}")
    _print_overruled(decision)
    return exit_for(decision)


async def _explain_live(options: argparse.Namespace) -> Exit:
    async with gate(options) as asking:
        explanation = await asking.explain(options.url)
    print(explanation)
    _print_overruled(explanation.decision)
    return exit_for(explanation.decision)


def _print_overruled(decision: polite.Decision) -> None:
    for rule in decision.overruled:
        print(f"  overruled: {rule}")
