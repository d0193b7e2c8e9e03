"""Each row of the fault matrix through a whole gate: verdict, reason, hits, deadline and memory, to the letter."""

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import polite
from polite.robots.access import Found, Unavailable, Unreachable
from tests.faults.matrix import MATRIX, Row, Verdict
from tests.faults.stage import Stage

AGENT = "FaultBot/1.0 (+https://bot.test)"
PURE = bool(os.environ.get("AIOHTTP_NO_EXTENSIONS"))
DEADLINE_S = 0.6
KINDS = {Verdict.PARSE: Found, Verdict.ALLOW: Unavailable, Verdict.DENY: Unreachable}
MEMORY = 8 * 1024 * 1024


@contextmanager
def growth(*, watched: bool) -> Iterator[Callable[[], int]]:
    """The most that was held at one time, beyond what was there before (octets)."""
    if not watched:
        yield lambda: 0
        return
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield lambda: tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def opened(row: Row, stage: Stage):
    return polite.open_gate(
        AGENT,
        robots=polite.RobotsPolicy(**row.robots),
        pacing=polite.PacingPolicy(min_delay=0, backoff=0),
        fetching=polite.FetchPolicy(
            timeout=DEADLINE_S, allowed_networks=["127.0.0.0/8", "::1/128"], **stage.fetching
        ),
    )


@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.number)
async def test_a_fault_comes_to_exactly_what_the_matrix_says(row: Row) -> None:
    verdict, reason = row.outcome(pure=PURE)

    async with row.scene() as stage, opened(row, stage) as gate:
        with growth(watched=row.heavy) as grown:
            started = time.monotonic()
            explanation = await gate.explain(f"{stage.origin}/private/page")
            took = time.monotonic() - started
            held = grown()

    access = explanation.snapshot.access
    assert (type(access), access.reason) == (KINDS[verdict], reason), access
    assert explanation.decision.allowed is (
        row.allowed if verdict is row.verdict else verdict is Verdict.ALLOW
    )
    assert stage.hits == row.hits
    assert took < DEADLINE_S + 0.5
    assert access.elapsed_s <= took
    assert held < MEMORY
    assert row.asked in b"".join(stage.requests[1:])
    assert b"Cookie" not in b"".join(stage.requests)
    if isinstance(access, Unreachable):
        assert access.option == (row.option if verdict is row.verdict and row.option else access.option)
