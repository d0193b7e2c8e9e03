"""`polite lint`: print what is wrong in a robots.txt, by line."""

import argparse
import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict
from urllib.parse import quote

from polite.cli import stdin
from polite.cli.options import READ_LIMIT, explained, read_octets
from polite.cli.terminal import OPTIONS, Exit, complain, spelled
from polite.errors import redact_url
from polite.robots.lint.checks import CODES, Finding
from polite.robots.lint.lint import lint as findings_of
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
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
    results = [_result(each, uri) for each in findings]
    run = {"tool": {"driver": driver}, "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(found: Finding, uri: str) -> dict[str, object]:
    level, text = CODES[found.code].level, {"text": f"{found.message}. {found.hint}."}
    place = {"artifactLocation": {"uri": uri}, "region": {"startLine": found.line}}
    return {"ruleId": found.code, "level": level, "message": text, "locations": [{"physicalLocation": place}]}


def lint(options: argparse.Namespace) -> Exit:
    """Print the findings. Return 1 if there are any."""
    if options.source == "-":
        name, body = "-", stdin.read_octets(READ_LIMIT)
    elif "://" in options.source:
        explanation = asyncio.run(explained(options, options.source, max_bytes=READ_LIMIT))
        access = explanation.snapshot.access
        if not isinstance(access, Found):
            complain(f"{explanation.target.origin.robots_url}: no robots.txt to check: {_why_none(access)}")
            return Exit.UNREACHABLE
        name, body = access.url, access.body
    else:
        name, body = options.source, read_octets(options.source)
    findings = findings_of(body, dialect=options.dialect)
    match options.format:
        case "sarif":
            print(json.dumps(sarif(findings, name), indent=2))
        case "json":
            for finding in findings:
                print(json.dumps(asdict(finding)))
        case _:
            for finding in findings:
                print(f"{redact_url(name)}:{finding.line}: {finding.code} {finding.message}")
                print(f"    {finding.hint}")
    return Exit.DISALLOWED if findings else Exit.ALLOWED


def _why_none(access: Unavailable | Unreachable) -> str:
    """Say why there is no file, and which command-line option changes that, if any does."""
    if access.reason is Reason.ADDRESS_REFUSED and isinstance(access, Unreachable) and access.detail:
        # It depends on the address whether an option permits it.
        return spelled(access.detail)
    option = OPTIONS.get(access.reason.option)
    return f"{access.reason.value}; {option} changes it" if option else access.reason.value
