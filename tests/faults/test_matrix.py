"""Each row of the fault matrix through a whole gate: verdict, reason, hits, deadline and memory; and the page made of it."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from aiohttp import http_parser

import polite
from polite.origin import Origin, Target
from polite.robots.exchange import Ask
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.transports.ftp import FtpTransport
from polite.transports.http import HttpTransport
from tests.faults.matrix import MATRIX
from tests.faults.page import PAGE, page
from tests.faults.row import Row, Verdict
from tests.support import slowness

AGENT = "FaultBot/1.0 (+https://bot.test)"
SWITCH = "AIOHTTP_NO_EXTENSIONS"
PURE = SWITCH in os.environ
DEADLINE_S = 0.6
# Of what ends by itself, within the deadline: so that a busy machine does not end it first.
PATIENT_S = 30.0
KINDS = {Verdict.PARSE: Found, Verdict.ALLOW: Unavailable, Verdict.DENY: Unreachable}


def fetch_policy(stage, timeout=DEADLINE_S):
    loopback = ["127.0.0.0/8", "::1/128"]
    return polite.FetchPolicy(timeout=timeout, allowed_networks=loopback, **stage.fetching)


def opened(row, stage):
    _, reason = row.outcome(pure=PURE)
    robots = polite.RobotsPolicy(**row.robots)
    pacing = polite.PacingPolicy(min_delay=0, backoff=0)
    fetching = fetch_policy(stage, patience_s(reason))
    return polite.open_gate(AGENT, robots=robots, pacing=pacing, fetching=fetching)


def patience_s(reason: Reason) -> float:
    return DEADLINE_S if reason in {Reason.TIMEOUT, Reason.DNS_TIMEOUT} else PATIENT_S


def allowed(row: Row, verdict: Verdict) -> bool:
    """The pure-Python parser's other verdict is the careful one, or an empty file."""
    return row.allowed if verdict is row.verdict else verdict is not Verdict.DENY


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.number)
async def test_a_fault_comes_to_exactly_what_the_matrix_says(row: Row) -> None:
    verdict, reason = row.outcome(pure=PURE)

    async with row.scene() as stage, opened(row, stage) as gate:
        started, busy = time.monotonic(), time.process_time()
        explanation = await gate.explain(f"{stage.origin}/private/page")
        took, busy = time.monotonic() - started, time.process_time() - busy

    access = explanation.snapshot.access
    assert (type(access), access.reason) == (KINDS[verdict], reason), access
    assert explanation.decision.allowed is allowed(row, verdict)
    assert stage.hits == row.hits
    # Ten times what was seen: a busy machine comes to it late.
    assert took < patience_s(reason) + 5.0
    assert busy < (DEADLINE_S + 0.5) * slowness()
    assert access.elapsed_s <= took
    assert row.asked in b"".join(stage.requests[1:])
    assert b"Cookie" not in b"".join(stage.requests)
    if isinstance(access, Unreachable) and row.option:
        assert access.option == row.option


@pytest.mark.parametrize("row", [row for row in MATRIX if row.heavy], ids=lambda row: row.number)
async def test_a_heavy_fault_is_held_in_little_memory(row: Row) -> None:
    async with row.scene() as stage:
        transports = {"http": HttpTransport, "ftp": FtpTransport}
        transport = transports[Origin.of(stage.origin).scheme](AGENT, fetch_policy(stage))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE_S):
                await transport.get(Ask(Target.of(f"{stage.origin}/robots.txt")))
        most = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        await transport.close()

    assert most < 8 * 1024 * 1024


def test_the_page_is_the_one_that_the_matrix_makes_and_each_number_has_its_row() -> None:
    assert PAGE.read_text() == page(), "python -m tests.faults.page writes it anew"
    assert {int(re.match(r"\d+", row.number)[0]) for row in MATRIX} == set(range(1, 103))  # type: ignore[index]
    assert len({row.number for row in MATRIX}) == len({row.fault for row in MATRIX}) == len(MATRIX)


@pytest.mark.slow("runs tests in another process")
def test_the_faults_come_to_what_the_matrix_says_without_the_c_parser() -> None:
    """aiohttp's pure-Python parser differs in what it accepts. It looks at the switch when it is imported."""
    if PURE:
        # This is that run: it must not start another, and must be what it is called.
        assert http_parser.HttpResponseParser is http_parser.HttpResponseParserPy
        return

    folder = Path(__file__).parent
    untraced = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder.parents[1],
        env={**untraced, SWITCH: "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=1_200,
    )

    assert run.returncode == 0, run.stdout[-5_000:] + run.stderr[-1_000:]
