"""Which Pythons `./dev matrix` runs, under which loops, and what it says of them."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.project import matrix


def listed(*found: tuple[str, str], variant: str = "default", implementation: str = "cpython") -> str:
    """What uv lists: a version and a path each."""
    return json.dumps(
        [
            {
                "version": version,
                "version_parts": dict(
                    zip(("major", "minor", "patch"), map(int, version.split("rc")[0].split(".")), strict=True)
                ),
                "path": path,
                "implementation": implementation,
                "variant": variant,
            }
            for version, path in found
        ]
    )


def test_each_version_is_run_by_its_newest_interpreter_and_by_no_shim() -> None:
    found = matrix.installed(
        listed(
            ("3.13.0", "/pyenv/shims/python3.13"),
            ("3.13.0", "/pyenv/versions/3.13.0/bin/python3.13"),
            ("3.11.2", "/usr/bin/python3.11"),
            ("3.11.7", "/pyenv/shims/python3.11"),
            ("3.10.13", "/usr/bin/python3.10"),
        )
    )

    assert found == {
        (3, 11): Path("/pyenv/shims/python3.11"),
        (3, 13): Path("/pyenv/versions/3.13.0/bin/python3.13"),
    }


@pytest.fixture
def machine(monkeypatch):
    """A machine with Python 3.11 alone, where `runs` collects what pytest was asked, and `status` is how it ends."""
    runs: list[tuple[str, str, list[str]]] = []
    status = {"asyncio": 0, "uvloop": 0}

    def run(command, *, env=None, **_):
        if "pytest" in command:
            loop = env["POLITE_TEST_LOOP"] or "asyncio"
            asked = command[command.index("worksteal") + 1 :]
            runs.append((str(command[0].parts[-3]), loop, asked))
            return subprocess.CompletedProcess(command, status[loop])
        return subprocess.CompletedProcess(
            command, 0, stdout=listed(("3.11.7", "/usr/bin/python3.11")).encode()
        )

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(
        matrix, "environment", lambda uv, version, python: Path(f".venv-{matrix.spoken(version)}")
    )
    return runs, status


def test_a_machine_with_3_11_alone_runs_it_and_names_what_is_missing(machine, capsys) -> None:
    runs, _ = machine

    assert matrix.main(["uv", "tests/gate/test_gate.py", "-x"]) == 0

    assert runs == [(".venv-3.11", loop, ["tests/gate/test_gate.py", "-x"]) for loop in ("asyncio", "uvloop")]
    out = capsys.readouterr().out
    assert "3.11         passed       -            passed" in out
    assert "missing: 3.12, 3.13, 3.14" in out


def test_a_failed_run_fails_the_matrix_and_the_others_still_run(machine, capsys) -> None:
    runs, status = machine
    status["asyncio"] = 1

    assert matrix.main(["uv"]) == 1

    assert len(runs) == 2
    assert "3.11         failed (1)   -            passed" in capsys.readouterr().out


def test_a_python_that_was_asked_for_and_is_missing_is_a_failure(machine, capsys) -> None:
    assert matrix.main(["uv", "--python", "3.13"]) == 1
    assert "missing: 3.13" in capsys.readouterr().out


def test_an_environment_that_cannot_be_made_is_a_failure(machine, monkeypatch, capsys) -> None:
    def broken(*_):
        raise subprocess.CalledProcessError(1, "uv")

    monkeypatch.setattr(matrix, "environment", broken)

    assert matrix.main(["uv"]) == 1
    assert "not set up" in capsys.readouterr().out
