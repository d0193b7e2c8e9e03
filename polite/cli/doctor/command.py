"""`polite doctor`: check a crawler's User-Agent header and the page that it names, and print which best practices hold."""

import argparse
import asyncio
import json
from collections.abc import Iterable

from polite.cli.doctor import page
from polite.cli.doctor.check import Check, Verdict
from polite.cli.doctor.names import check_header, page_of
from polite.cli.exit_codes import Exit
from polite.cli.option_names import command_line_text
from polite.errors import InvalidUserAgent
from polite.robots.agent import UserAgent
from polite.robots.policy import FetchPolicy

# What polite does for each crawler, and what it leaves to its operator; docs/explanation/best-practices.md has the tests.
BY_POLITE = (
    Check("2.1", Verdict.OK, "polite obeys robots.txt; polite.indexing reads Robots-Tag"),
    Check("2.3", Verdict.OK, "polite paces requests, and backs off on 429, 503, failures and slow responses"),
    Check(
        "2.4",
        Verdict.YOURS,
        "conditional requests: open_gate(recrawl=RecrawlPolicy()), or polite fetch --recrawl",
    ),
)


def doctor(options: argparse.Namespace) -> Exit:
    """Print the checks. Return 1 if there is a warning or a problem, 3 if the page was not fetched."""
    checks = list(check_header(options.agent))
    status = Exit.ALLOWED
    url = page_of(options.agent)
    if url is None or _cannot_be_sent(options.agent):
        checks += unseen("no page is known")
    elif options.offline:
        checks += unseen("not looked for: --offline")
    else:
        found, status = asyncio.run(_visit(options, url))
        checks += found
    checks += BY_POLITE
    checks.sort(key=lambda check: check.section)
    _print(checks, as_json=options.json)
    if any(check.verdict in (Verdict.WARNING, Verdict.PROBLEM) for check in checks):
        return max(status, Exit.DISALLOWED)
    return status


async def _visit(options: argparse.Namespace, url: str) -> tuple[list[Check], Exit]:
    agent = UserAgent(options.agent)
    fetching = FetchPolicy(timeout=options.timeout, allow_private=options.allow_private)
    try:
        fetched = await page.fetch(agent, url, fetching, options.resolve)
    except page.NotFetched as error:
        return [error.check, *unseen("the page was not fetched")], Exit.UNREACHABLE
    return list(page.check_page(agent, fetched)), Exit.ALLOWED


def unseen(because: str) -> list[Check]:
    """Return what only the page could tell."""
    return [
        Check("2.5", Verdict.YOURS, f"a page with the addresses that the crawler comes from ({because})"),
        Check(
            "2.6",
            Verdict.YOURS,
            f"a page that says how to block it, and what the data is used for ({because})",
        ),
    ]


def _cannot_be_sent(header: str) -> bool:
    try:
        UserAgent(header)
    except InvalidUserAgent:
        return True
    return False


def _print(checks: Iterable[Check], *, as_json: bool) -> None:
    for check in checks:
        text = command_line_text(check.text)
        if as_json:
            print(json.dumps({"practice": check.section, "verdict": check.verdict, "text": text}))
        else:
            print(f"{check.section}  {check.verdict:8} {text}")
