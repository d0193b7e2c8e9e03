"""`polite lint`: what is wrong in a robots.txt, by line."""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path

import polite
from polite.cli.exits import Exit
from polite.cli.gate import gate
from polite.robots.access import Found

# More than counts as rules, so that what lies beyond the cap can be reported (X8).
_READ_LIMIT = 4 * 1024 * 1024


def lint(options: argparse.Namespace) -> Exit:
    """Print the findings; 1 when there are any."""
    body = asyncio.run(_fetched(options)) if "://" in options.source else _read(options.source)
    if body is None:
        return Exit.UNREACHABLE
    findings = polite.lint(body, dialect=polite.dialect(options.dialect))
    for finding in findings:
        if options.json:
            print(json.dumps(asdict(finding)))
        else:
            print(f"{options.source}:{finding.line}: {finding.code} {finding.message}\n    {finding.hint}")
    return Exit.DISALLOWED if findings else Exit.ALLOWED


def _read(source: str) -> bytes:
    return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()


async def _fetched(options: argparse.Namespace) -> bytes | None:
    """The robots.txt of the URL's origin; None, and a word about it, when there is no file to look at."""
    async with gate(options, max_bytes=_READ_LIMIT) as asking:
        explanation = await asking.explain(options.source)
    access = explanation.snapshot.access
    if isinstance(access, Found):
        return access.body
    print(f"polite: no robots.txt to look at: {access.reason.value}", file=sys.stderr)
    return None
