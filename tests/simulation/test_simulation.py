"""Each invariant holds in worlds drawn from seeds, and a seed repeats its world."""

import gc
import os
import subprocess
import sys

import pytest

from tests.simulation.__main__ import main
from tests.simulation.simulation import run, run_some


def expect_all_holds(first: int, count: int, machines: int | None) -> None:
    failures, pages, robots = run_some(first, count, machines)

    assert failures == []
    assert pages > 0
    assert robots > 0


@pytest.mark.slow("many seeds", fast=4)
@pytest.mark.parametrize("first", range(0, 500, 25))
def test_every_invariant_holds(first: int) -> None:
    expect_all_holds(first, 25, None)


@pytest.mark.slow("many seeds", rows=["10]", "30]", "40]", "50]"])
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_every_invariant_holds_over_all_machines(first: int) -> None:
    expect_all_holds(first, 10, 0)


@pytest.mark.parametrize(("seed", "machines"), [(7, None), (2, 0)])
def test_a_seed_repeats_its_world(seed: int, machines: int | None) -> None:
    one: list[str] = []
    other: list[str] = []

    assert run(seed, machines, one.append) == run(seed, machines, other.append)
    assert one == other
    assert len(one) > 10


@pytest.mark.slow("many worlds")
def test_a_world_does_not_depend_on_how_strings_are_hashed() -> None:
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


def test_a_drop_whose_process_is_killed_before_it_tells_is_no_lost_task() -> None:
    # max_tries=1: a permit is given back, which a kill keeps from the file. The next process drops the task, and is killed, too.
    assert run(952016223, None).lives == 3


def test_a_fetch_that_ends_while_slots_are_taken_back_is_no_more_under_way() -> None:
    run(3101841, None)


def test_a_permit_that_is_entered_late_and_gets_no_rules_sends_its_task_back() -> None:
    run(3002672, None)


def test_files_of_a_killed_process_are_closed() -> None:
    # The process is killed while its store closes. Only the store's thread closes the file then.
    gc.disable()
    try:
        run(5278, None)
    finally:
        gc.enable()


def test_the_command_runs_many_worlds_or_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "2", "--jobs", "1"]) == 0
    assert "2 worlds from seed 0" in capsys.readouterr().out

    assert main(["--machines", "--seed", "2", "--trace"]) == 0
    assert "robots requested" in capsys.readouterr().out
