"""`polite lint`: print what is wrong in a robots.txt, by line."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import NamedTuple
from urllib.parse import quote

from polite.cli import options as file
from polite.cli import stdin
from polite.cli.options import site_file, why_none
from polite.cli.terminal import Exit
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
    uri = _uri(source)
    results = [_result(finding, uri) for finding in findings]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(finding: Finding, uri: str) -> dict[str, object]:
    return {
        "ruleId": finding.code,
        "level": CODES[finding.code].level,
        "message": {"text": f"{finding.message}. {finding.hint}."},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {"startLine": finding.line},
                }
            }
        ],
    }


def _uri(source: str) -> str:
    if source == "-":
        return "robots.txt"
    return redact_url(source) if "://" in source else quote(source)


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
    target, access = await site_file(options, options.source, max_bytes=file.READ_LIMIT)
    if isinstance(access, Found):
        return _File(access.url, access.body)
    where = target.origin.robots_url
    print(f"polite: {where}: no robots.txt to check: {why_none(access)}", file=sys.stderr)
    return None
