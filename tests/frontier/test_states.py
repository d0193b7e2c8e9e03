"""The table of an origin queue's transitions: each row occurs, and nothing happens to a queue that has no row."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import polite.frontier
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.queue_states import TRANSITIONS, NoTransition, QueueEvent, QueueState
from polite.testing import Simulation

Row = tuple[QueueState, QueueEvent]
WORLDS = 120


@pytest.fixture
def occurred(monkeypatch: pytest.MonkeyPatch) -> set[Row]:
    """The rows that queues went through."""
    rows: set[Row] = set()
    move = OriginQueue.move

    def record(queue: OriginQueue, event: QueueEvent) -> None:
        rows.add((queue.state, event))
        move(queue, event)

    monkeypatch.setattr(OriginQueue, "move", record)
    return rows


def test_rows_of_simulated_crawls_occur(occurred: set[Row]) -> None:
    for seed in range(WORLDS):
        Simulation(seed).run()
    rows = {(state, event) for state, events in TRANSITIONS.items() for event in events}
    for r in sorted((a.name, b.name) for a, b in rows - occurred): print(r)
    assert 0
