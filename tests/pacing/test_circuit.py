"""A circuit opens after failures in a row, stays open ever longer, and one probe's answer closes it."""

import pytest

from polite.pacing import circuit
from polite.pacing.circuit import Circuits
from polite.pacing.outcome import Outcome, is_failure, is_response
from polite.pacing.policy import PacingPolicy

A, B = "a.example", "b.example"
POLICY = PacingPolicy(circuit_failures=3, circuit_rest=60.0, max_backoff=200.0)


def circuits() -> Circuits:
    return Circuits(random=lambda: 0.0)


def opened(at: float = 0.0) -> Circuits:
    made = circuits()
    for _ in range(3):
        made.failed(A, at - 1.0, at, POLICY)
    return made


@pytest.mark.parametrize(
    ("outcome", "failure", "answer"),
    [
        (Outcome(404), False, True),
        (Outcome(429), False, False),
        (Outcome(500), True, False),
        (Outcome(), False, False),
        (Outcome(failed=True), True, False),
    ],
)
def test_a_failure_is_no_answer_or_a_servers_own_error(outcome: Outcome, failure: bool, answer: bool) -> None:
    assert (is_failure(outcome), is_response(outcome)) == (failure, answer)


def test_it_opens_after_so_many_failures_in_a_row_which_a_response_ends() -> None:
    rows = circuits()
    assert [rows.failed(A, None, now, POLICY) for now in (1.0, 2.0)] == [None, None]
    assert not rows.responded(A, 2.0)
    assert not rows.responded(B, 2.0)
    assert [rows.failed(A, None, now, POLICY) for now in (3.0, 4.0, 5.0)] == [None, None, 60.0]
    assert (rows.is_open(A), rows.is_open(B), rows.failures(A)) == (True, False, 3)


def test_the_probe_closes_it_or_opens_it_for_twice_as_long_up_to_the_limit() -> None:
    rows = opened()
    assert [rows.failed(A, at - 1.0, at, POLICY) for at in (61.0, 182.0, 400.0)] == [120.0, 200.0, 200.0]
    assert rows.responded(A, 601.0)
    assert not rows.is_open(A)
    assert rows.failed(A, 602.0, 602.0, POLICY) is None


def test_what_was_granted_before_it_opened_neither_closes_it_nor_keeps_it_open() -> None:
    rows = opened(at=10.0)
    assert rows.failed(A, 9.0, 11.0, POLICY) is None
    assert rows.failed(A, None, 11.0, POLICY) is None
    assert not rows.responded(A, 9.0)
    assert not rows.responded(A, None)
    assert rows.is_open(A)
    assert rows.failures(A) == 3


def test_an_old_row_is_forgotten_and_an_open_circuit_is_not() -> None:
    rows = circuits()
    rows.failed(B, None, 0.0, POLICY)
    for _ in range(3):
        rows.failed(A, None, 1.0, POLICY)
    rows.failed("c.example", None, 10_000.0, POLICY)
    assert list(rows.rows) == [A, "c.example"]


def test_however_many_fail_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit, "_MOST_ROWS", 10)
    rows = circuits()
    for number in range(100):
        for _ in range(3):
            rows.failed(f"host-{number}", None, float(number), POLICY)
    assert len(rows.rows) == 10
    assert rows.is_open("host-99")
