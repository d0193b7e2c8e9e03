"""Each invariant holds in worlds drawn from seeds, a seed repeats its world, and defects in users' parts are found."""

import gc
import os
import subprocess
import sys

import pytest

from tests.simulation.__main__ import main
from tests.simulation.drawing import draw
from tests.simulation.judge import Judge
from tests.simulation.simulation import run, run_some
from tests.simulation.trace import SimulationFailed

SEEDS, AT_A_TIME = 500, 25


@pytest.mark.slow("many seeds", fast=4)
@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
def test_every_invariant_holds(first):
    failures, pages, robots = run_some(first, AT_A_TIME)

    assert failures == []
    assert pages > 0
    assert robots > 0


def test_a_seed_repeats_its_world():
    one, other = [], []

    first = run(7, None, one.append)
    again = run(7, None, other.append)

    assert one == other
    assert first == again
    assert len(one) > 10


@pytest.mark.slow("many worlds")
def test_a_world_does_not_depend_on_how_strings_are_hashed():
    program = (
        "from tests.simulation.simulation import run\nfor seed in (3, 11, 40):\n    run(seed, None, print)\n"
    )

    traces = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(traces) == 1
    assert len(traces.pop()) > 1_000


def test_a_drop_whose_process_is_killed_before_it_tells_is_no_lost_task():
    # max_tries=1: a permit is given back, which a kill keeps from the file. The next process drops the task, and is killed, too.
    assert run(952016223, None).lives == 3


def test_a_fetch_that_ends_while_slots_are_taken_back_is_no_more_under_way():
    run(3101841, None)


def test_a_permit_that_is_entered_late_and_gets_no_rules_sends_its_task_back():
    run(3002672, None)


def test_files_of_a_killed_process_are_closed():
    # The process is killed while its store closes. Only the store's thread closes the file then.
    gc.disable()
    try:
        run(5278, None)
    finally:
        gc.enable()


def test_a_failing_world_is_made_smaller_and_fails_in_the_same_way(monkeypatch):
    def fail(judge, url, granted_at):
        judge._trace.fail("a request", url)

    monkeypatch.setattr(Judge, "permit_entered", fail)
    monkeypatch.setattr("tests.simulation.simulation._SHRINKING_S", 2.0)

    with pytest.raises(SimulationFailed, match="seed 7: a request: ") as failed:
        run(7, None, shrink=True)

    assert len(failed.value.plan.steps) < len(draw(7).steps)
    assert failed.value.invariant == "a request"
    assert any("VIOLATION" in line for line in failed.value.trace)


@pytest.mark.slow("many worlds")
def test_the_command_runs_many_worlds_or_one(capsys):
    assert main(["--seeds", "2", "--jobs", "2"]) == 0
    assert "2 worlds from seed 0" in capsys.readouterr().out

    assert main(["--seed", "7"]) == 0
    assert "Report(seed=7" in capsys.readouterr().out

    assert main(["--seed", "7", "--trace"]) == 0
    assert "robots requested" in capsys.readouterr().out
