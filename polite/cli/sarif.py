"""Formats findings as SARIF 2.1.0 (OASIS), which code hosts and editors show beside the lines."""

from collections.abc import Iterable
from urllib.parse import quote

from polite.errors import redact_url
from polite.robots.lint.finding import CODES, Finding
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
