"""`polite check -` and `polite fetch -` as processes of their own in a pipe."""

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Timer

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 20


@pytest.fixture
def start():
    """`start(arguments...)`: `polite` with pipes on all three streams; ended with the test."""
    with ExitStack() as started:

        def start(*arguments):
            process = subprocess.Popen(
                [sys.executable, "-m", "polite", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=ROOT,
                # Pipes are buffered by default: the command itself must flush each result.
                env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
            )
            started.enter_context(process)
            started.callback(process.kill)
            # A hanging test must fail: killing the process ends the blocked read.
            guard = Timer(LIMIT_S, process.kill)
            guard.start()
            started.callback(guard.cancel)
            return process

        yield start


def _answer(process, url):
    process.stdin.write(f"{url}\n".encode())
    process.stdin.flush()
    return process.stdout.readline().decode()


def test_an_answer_comes_before_the_next_line_is_read(start, rules):
    process = start("check", "--robots", rules, "-")

    assert _answer(process, "http://x/yes").startswith("allowed ")
    assert _answer(process, "http://x/no").startswith("disallowed ")
    process.stdin.close()
    assert process.wait(LIMIT_S) == 1


@pytest.mark.slow("starts processes")
def test_a_sites_answer_comes_before_the_next_line_is_read(start, site):
    process = start("check", "--allow-private", "-")

    assert _answer(process, f"{site.origin}/yes").startswith("allowed ")
    assert _answer(process, "nonsense").startswith("invalid ")
    assert _answer(process, f"{site.origin}/no").startswith("disallowed ")
    process.stdin.close()
    assert process.wait(LIMIT_S) == 2


@pytest.mark.slow("starts processes", fast=1)
@pytest.mark.parametrize("by_site", [False, True])
def test_a_reader_that_leaves_ends_it_quietly(by_site, start, site, rules):
    process = start("check", *(["--allow-private"] if by_site else ["--robots", rules]), "-")
    _answer(process, f"{site.origin}/yes")

    process.stdout.close()
    process.stdin.write(f"{site.origin}/no\n".encode())
    process.stdin.flush()

    # Standard input is still open: the command must not wait for another line.
    assert process.wait(LIMIT_S) == 141
    assert process.stderr.read() == b""


def _fetching(start):
    return start("fetch", "--allow-private", "--quiet", "--delay", "0", "-")


@pytest.mark.slow("starts processes")
def test_a_record_comes_before_the_next_line_is_read(start, site):
    process = _fetching(start)

    assert '"outcome": "fetched"' in _answer(process, f"{site.origin}/yes")
    assert '"outcome": "refused"' in _answer(process, f"{site.origin}/no")
    process.stdin.close()
    assert process.wait(LIMIT_S) == 1


@pytest.mark.slow("starts processes")
def test_a_fetch_with_a_closed_output_ends_quietly(start, site):
    process = _fetching(start)
    _answer(process, f"{site.origin}/yes")

    process.stdout.close()
    process.stdin.write(f"{site.origin}/more\n".encode())
    process.stdin.flush()

    assert process.wait(LIMIT_S) == 141
    assert process.stderr.read() == b""


@pytest.mark.slow("starts processes")
def test_an_interrupted_fetch_waits_for_no_line_that_may_never_come(start, site):
    process = _fetching(start)
    _answer(process, f"{site.origin}/yes")

    process.send_signal(signal.SIGINT)

    assert process.wait(LIMIT_S) == 130
    assert b"the list was not read to its end" in process.stderr.read()
