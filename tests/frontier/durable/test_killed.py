"""A crawl that is killed loses no task that was put, and after a restart sends no request too early."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow("kills processes in real time")
def test_killed_five_times_a_crawl_loses_nothing_and_keeps_every_gap():
    command = [sys.executable, "-m", "tests.system.soak_frontier", "5"]

    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=ROOT)

    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) put", done.stdout)[1]) > 100
    assert int(re.search(r"(\d+) given out", done.stdout)[1]) > 20
