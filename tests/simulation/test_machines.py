"""Worlds of several machines that share a real server in lock-step."""

from random import Random

import pytest

from tests.simulation.__main__ import main
from tests.simulation.machines.conductor import CallWatch, Conductor, MachineLoop
from tests.simulation.machines.plan import Fault, draw_machines
from tests.simulation.simulation import run, run_some
from tests.simulation.trace import Trace


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


def test_a_process_that_sends_commands_while_nothing_happens_spins() -> None:
    now = 0.0
    trace = Trace(lambda: now)
    watch = CallWatch("m0.1", 2, lambda: 7, trace, lambda: now)

    for _ in range(600):
        now += 0.034
        watch.sent()
    assert trace.violation is None
    for _ in range(400):
        now += 0.02
        watch.sent()

    assert trace.violation is not None
    assert trace.violation.invariant == "no process spins"


@pytest.mark.parametrize("after_s", [0.0, 0.00001])
def test_a_loop_in_which_time_stands_still_ends(after_s: float) -> None:
    conductor = Conductor()
    loop = MachineLoop(start=0.0, chance=Random(0))
    conductor.loops.append(loop)

    def again() -> None:
        loop.call_later(after_s, again) if after_s else loop.call_soon(again)

    again()

    assert not conductor.run()
    assert conductor.spins
    loop.discard()


def test_the_command_runs_worlds_of_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--machines", "2", "--seeds", "2", "--jobs", "1"]) == 0
    assert "2 worlds from seed 0" in capsys.readouterr().out

    assert main(["--machines", "--seed", "2", "--trace"]) == 0
    assert "robots requested" in capsys.readouterr().out
