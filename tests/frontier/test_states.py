"""The table of transitions at the head of dispatcher.py is true of simulated crawls: no queue goes another way."""

import re
from collections.abc import Iterator
from itertools import product

import pytest

from polite.frontier import dispatcher
from polite.frontier.origin_queue import OriginQueue, QueueState
from polite.testing import Simulation

ALL = {state.name for state in QueueState}
SEEK = {"NEW", "FETCHING_RULES", "POSTPONED", "WAITING_TURN", "ASSIGNED"}
# Words of the table that stand for several states. A queue that is removed makes no transition.
BEFORE = {
    "any": ALL - {"REMOVED"},
    "(none)": set(),
    "waits for long": {"FETCHING_RULES", "WAITING_TURN", "POSTPONED"},
}
WORLDS = 120


def rows() -> Iterator[tuple[str, str, str]]:
    """Return each row's state, its next state, and what else its words name."""
    for line in re.findall(r"^\|(.*)\|$", dispatcher.__doc__ or "", re.MULTILINE)[2:]:
        state, event, after, action = (cell.strip() for cell in line.split("|"))
        if not event.startswith("seek:"):
            yield state, after, action


def allowed() -> set[tuple[str, str]]:
    """Return the pairs of states that the rows allow. The rows of `seek` itself say what SEEK stands for."""
    pairs: set[tuple[str, str]] = set()
    for state, after, action in rows():
        before = BEFORE.get(state, {state})
        then = SEEK if after == "seek" else {after}
        named = {name for name in ALL if re.search(rf"\b{name}\b", action)}
        pairs |= set(product(before, then | named | (SEEK if "seek" in action.split(",")[0] else set())))
    return pairs


def test_queues_of_simulated_crawls_take_only_transitions_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slot, seen = OriginQueue.state, set()  # type: ignore[attr-defined]

    def write(queue: OriginQueue, state: QueueState) -> None:
        try:
            seen.add((slot.__get__(queue).name, state.name))
        except AttributeError:
            assert state is QueueState.NEW
        slot.__set__(queue, state)

    monkeypatch.setattr(OriginQueue, "state", property(slot.__get__, write))

    for seed in range(WORLDS):
        Simulation(seed).run()

    assert {(old, new) for old, new in seen if old != new} - allowed() == set()
    assert len(seen) > 15
