"""Worlds of several machines that share a real server in lock-step."""

import pytest

from tests.simulation.__main__ import main
from tests.simulation.machines.plan import Fault, draw_machines
from tests.simulation.simulation import run, run_some


@pytest.mark.slow("many seeds", rows=["10]", "30]", "40]", "50]"])
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_every_invariant_holds_over_all_machines(first: int) -> None:
    failures, pages, robots = run_some(first, 10, 0)

    assert failures == []
    assert pages > 0
    assert robots > 0


def test_a_seed_repeats_its_world() -> None:
    one: list[str] = []
    other: list[str] = []

    run(2, 0, one.append)
    run(2, 0, other.append)

    assert one == other
    assert len(one) > 10


def test_plans_are_values_that_a_seed_draws_again() -> None:
    plans = [draw_machines(seed) for seed in range(200)]

    assert plans == [draw_machines(seed) for seed in range(200)]
    assert draw_machines(1, machines=5).machines == 5
    kinds = {fault.kind for plan in plans for fault in plan.faults}
    assert kinds == {"stop", "kill", "cut", "pause", "down", "restart", "failover", "empty"}
    assert all(isinstance(fault, Fault) for plan in plans for fault in plan.faults)
    assert {plan.partitions for plan in plans} == {1, 2, 3, 4}
    assert {plan.order for plan in plans} == {"fifo", "priority", "depth", "deadline"}
    assert any(step.not_before_s for plan in plans for step in plan.steps)
    assert any(sum(not each for each in plan.frontiers) > 1 and any(plan.frontiers) for plan in plans)


def test_the_command_runs_worlds_of_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--machines", "2", "--seeds", "2", "--jobs", "1"]) == 0
    assert "2 worlds from seed 0" in capsys.readouterr().out

    assert main(["--machines", "--seed", "2", "--trace"]) == 0
    assert "robots requested" in capsys.readouterr().out
