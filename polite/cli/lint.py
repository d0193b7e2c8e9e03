"""`polite lint`: print what is wrong in a robots.txt, by line."""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict
from typing import NamedTuple

from polite.cli import file, stdin
from polite.cli.exit_codes import Exit
from polite.cli.gate import open_gate_for
from polite.cli.option_names import command_line_text, option_of
from polite.cli.sarif import sarif
from polite.errors import redact_url
from polite.robots.fetching.result import Found, Unavailable, Unreachable
from polite.robots.lint.lint import lint as findings_of
from polite.robots.reason import Reason


class _File(NamedTuple):
    """A robots.txt. `name` is a path, `-`, or the URL it came from, after redirects."""

    name: str
    body: bytes


def lint(options: argparse.Namespace) -> Exit:
    """Print the findings. Return 1 if there are any."""
    checked = _file(options)
    if checked is None:
        return Exit.UNREACHABLE
    findings = findings_of(checked.body, dialect=options.dialect)
    match options.format:
        case "sarif":
            print(json.dumps(sarif(findings, checked.name), indent=2))
        case "json":
            for finding in findings:
                print(json.dumps(asdict(finding)))
        case _:
            for finding in findings:
                print(f"{redact_url(checked.name)}:{finding.line}: {finding.code} {finding.message}")
                print(f"    {finding.hint}")
    return Exit.DISALLOWED if findings else Exit.ALLOWED


def _file(options: argparse.Namespace) -> _File | None:
    if options.source == "-":
        return _File("-", stdin.read_octets(file.READ_LIMIT))
    if "://" in options.source:
        return asyncio.run(_fetch(options))
    return _File(options.source, file.read_octets(options.source))


async def _fetch(options: argparse.Namespace) -> _File | None:
    """Return the robots.txt of the URL's origin. If there is none, print why and return None."""
    async with open_gate_for(options, max_bytes=file.READ_LIMIT) as gate:
        explanation = await gate.explain(options.source)
    access = explanation.snapshot.access
    if isinstance(access, Found):
        return _File(access.url, access.body)
    where = explanation.target.origin.robots_url
    print(f"polite: {where}: no robots.txt to check: {_why(access)}", file=sys.stderr)
    return None


def _why(access: Unavailable | Unreachable) -> str:
    """Say why there is no file, and which command-line option changes that, if any does."""
    if access.reason is Reason.ADDRESS_REFUSED and isinstance(access, Unreachable) and access.detail:
        # It depends on the address whether an option permits it.
        return command_line_text(access.detail)
    option = option_of(access.reason.option)
    return f"{access.reason.value}; {option} changes it" if option else access.reason.value
