"""`polite lint`: print what is wrong in a robots.txt, by line."""

import argparse
import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import NamedTuple
from urllib.parse import quote

from polite.cli import stdin
from polite.cli.options import READ_LIMIT, read_octets, site_file, why_none
from polite.cli.terminal import Exit, complain
from polite.errors import redact_url
from polite.robots.lint.checks import CODES, Finding
from polite.robots.lint.lint import lint as findings_of
from polite.robots.result import Found
from polite.version import __version__

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(findings: Iterable[Finding], source: str) -> dict[str, object]:
    """Return a SARIF log with one run over one file.

    Args:
        source: a file, `-`, or the URL of the robots.txt.
    """
    rules = [
        {"id": code, "shortDescription": {"text": each.title}, "defaultConfiguration": {"level": each.level}}
        for code, each in CODES.items()
    ]
    driver = {"name": "polite", "version": __version__, "rules": rules}
    uri = "robots.txt" if source == "-" else redact_url(source) if "://" in source else quote(source)
    results = [
        {
            "ruleId": each.code,
            "level": CODES[each.code].level,
            "message": {"text": f"{each.message}. {each.hint}."},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri},
                        "region": {"startLine": each.line},
                    }
                }
            ],
        }
        for each in findings
    ]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


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
        return _File("-", stdin.read_octets(READ_LIMIT))
    if "://" in options.source:
        return asyncio.run(_fetch(options))
    return _File(options.source, read_octets(options.source))


async def _fetch(options: argparse.Namespace) -> _File | None:
    """Return the robots.txt of the URL's origin. If there is none, print why and return None."""
    target, access = await site_file(options, options.source, max_bytes=READ_LIMIT)
    if isinstance(access, Found):
        return _File(access.url, access.body)
    complain(f"{target.origin.robots_url}: no robots.txt to check: {why_none(access)}")
    return None
