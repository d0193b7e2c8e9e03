"""What `./dev types` makes of a report of pyright."""

import json
import subprocess

import pytest

from tests.project import public_types

GUESSED = {
    "file": "polite/task.py",
    "severity": "error",
    "message": "Type is missing type annotation",
    "range": {"start": {"line": 6}},
}
WITHOUT_DOCSTRING = {**GUESSED, "severity": "warning", "message": "No docstring found"}
MADE_OF_IT = {**GUESSED, "message": 'Type of parameter "task" is partially unknown'}


def symbol(name, *diagnostics, known=False, exported=True):
    return {
        "name": f"polite.{name}",
        "isExported": exported,
        "isTypeKnown": known,
        "diagnostics": list(diagnostics),
    }


@pytest.fixture
def report(monkeypatch):
    """Have pyright report these symbols."""

    def say(*symbols):
        text = json.dumps({"typeCompleteness": {"symbols": symbols}} if symbols else {}).encode()
        monkeypatch.setattr(
            subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, stdout=text)
        )

    return say


def test_a_type_that_each_checker_infers_for_itself_is_named_with_its_line(report, capsys):
    report(
        symbol("Task.url", WITHOUT_DOCSTRING, GUESSED),
        symbol("Task"),
        symbol("put", MADE_OF_IT),
        symbol("Gate", WITHOUT_DOCSTRING, known=True),
    )

    assert public_types.main() == 1

    line, last = capsys.readouterr().out.splitlines()
    assert line == "polite/task.py:7: polite.Task.url: Type is missing type annotation"
    assert last.startswith("4 public symbols, 1 problem; 0 left out")


def test_what_is_not_exported_or_made_of_crawl4ais_types_is_left_out(report, capsys):
    report(symbol("integrations.crawl4ai.Crawler", GUESSED), symbol("other", GUESSED, exported=False))

    assert public_types.main() == 0
    assert (
        capsys.readouterr().out == "1 public symbols, 0 problems; 1 left out, since crawl4ai is not typed\n"
    )


def test_a_report_without_symbols_is_a_failure(report, capsys):
    report()

    assert public_types.main() == 2
    assert "no report" in capsys.readouterr().err
