"""A process that is killed loses nothing that was acknowledged; `./dev soak` does the same a hundred times."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow("kills processes in real time")
def test_killed_five_times_nothing_acknowledged_is_lost():
    command = [sys.executable, "-m", "tests.system.soak", "kill", "5"]

    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=ROOT)

    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) acknowledged, none lost, integrity check ok", done.stdout)[1]) > 100
