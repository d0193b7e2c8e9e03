"""Standard input as lines: bounded, as they arrive, and without blocking the end of the program. The program as a process."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from threading import Timer

import pytest

from polite.cli.stdin import LONGEST_LINE, batches_of


def test_lines_come_out_of_whatever_pieces_they_arrive_in_and_of_a_long_one_only_the_start():
    def lines(*chunks):
        return list(chain.from_iterable(batches_of(iter([*chunks, b""]).__next__)))

    assert lines(b"a", b"b\nc", b"\n\nd\ne") == [b"ab", b"c", b"", b"d", b"e"]
    assert lines(*[b"x" * 50_000] * 20, b"x\ny") == [b"x" * (LONGEST_LINE + 1), b"y"]


ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60


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


@pytest.mark.slow("starts processes")
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_record_comes_before_the_next_line_is_read_and_interrupts_wait_for_none(interrupted, start, site):
    process = start("fetch", "--allow-private", "--quiet", "--delay", "0", "-")

    assert '"outcome": "fetched"' in _answer(process, f"{site.origin}/yes")
    assert '"outcome": "refused"' in _answer(process, f"{site.origin}/no")
    if interrupted:
        process.send_signal(signal.SIGINT)
    else:
        process.stdin.close()

    assert process.wait(LIMIT_S) == (130 if interrupted else 1)
    assert (b"the list was not read to its end" in process.stderr.read()) is interrupted


@pytest.mark.slow("starts processes")
@pytest.mark.parametrize("output", [True, False])
def test_a_run_that_is_killed_loses_nothing_and_repeats_what_was_under_way(output, start, site, tmp_path):
    stalled, killed = threading.Event(), threading.Event()

    def stall(path):
        site.asked.append(path)
        if path == "/slow" and not stalled.is_set():
            stalled.set()
            killed.wait(LIMIT_S)

    site.before = stall
    files = ["--resume", str(tmp_path / "queue"), "--warc", str(tmp_path / "a.warc.gz")]
    files += ["--output", str(tmp_path)] if output else []
    command = ["fetch", "--agent", "TestBot/1.0", *files]
    urls = [f"{site.origin}/{name}" for name in ("a", "b", "slow", "c", "d")]

    first = start(*command, "--allow-private", "--delay", "0", *urls)
    assert stalled.wait(LIMIT_S)
    first.kill()
    killed.set()
    again = start(*command)
    assert again.wait(LIMIT_S) == 0

    printed = (
        (tmp_path / "records.jsonl").read_bytes() if output else first.stdout.read() + again.stdout.read()
    )
    records = [json.loads(line) for line in printed.splitlines()]
    paths = sorted(record["url"].removeprefix(site.origin) for record in records)
    assert paths == ["/a", "/b", "/c", "/d", "/slow"]
    assert [record["tries"] for record in records if record["url"].endswith("/slow")] == [2]
    assert sorted(site.asked) == ["/a", "/b", "/c", "/d", "/robots.txt", "/slow", "/slow"]
