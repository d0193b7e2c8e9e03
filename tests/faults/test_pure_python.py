"""All of it once more without aiohttp's C parser, which differs from the pure-Python one in what it accepts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import http_parser

HERE = Path(__file__).resolve()
SWITCH = "AIOHTTP_NO_EXTENSIONS"


def run_without_extensions() -> subprocess.CompletedProcess[str]:
    """These tests in a Python of their own: aiohttp looks at the switch when it is imported."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE.parent)]
    environment = {**os.environ, SWITCH: "1"}
    root = HERE.parents[2]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow("runs tests in another process")
def test_the_faults_come_to_what_the_matrix_says_without_the_c_parser() -> None:
    if SWITCH in os.environ:
        # This is that run: it must not start another, and must be what it is called.
        assert http_parser.HttpResponseParser is http_parser.HttpResponseParserPy
        return

    run = run_without_extensions()

    assert run.returncode == 0, run.stdout[-5_000:] + run.stderr[-1_000:]
