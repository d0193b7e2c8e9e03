"""Several processes crawl together while one of them, or the store, comes to harm; the servers' log is the judge.

In real time, unlike other tests: what is tested is processes, signals, sockets and a server. This is the short form, and
`./dev soak many` the whole one, with more hosts and more faults.
"""

import pytest

from tests.many.controls import CONTROLS
from tests.many.faults import FAULTS, wrong
from tests.many.matrix import package_of, run
from tests.many.world import World

pytestmark = pytest.mark.slow("processes and servers in real time")

PROCESSES = 4
# The crawl lasts some two leases, so that what a lost lease leads to is seen.
_RUNS_OF_A_CONTROL = 6
WORLD = World(hosts=12, pages=20, delay_s=0.25, lease_s=2.0)


@pytest.mark.parametrize("name", ["none", "sigstop-long", "store-restarted"])
def test_no_gap_is_short_and_no_page_is_lost(name: str) -> None:
    outcome = run(FAULTS[name], WORLD, PROCESSES)

    assert wrong(FAULTS[name], outcome) == []
    assert outcome.verdict.robots == 1


def test_hosts_of_a_killed_process_go_on_after_its_lease() -> None:
    outcome = run(FAULTS["sigkill"], WORLD, PROCESSES)

    assert wrong(FAULTS["sigkill"], outcome) == []
    assert outcome.verdict.silence_s <= WORLD.longest_silence_s


def test_without_a_shared_store_nearly_every_gap_is_short() -> None:
    outcome = run(FAULTS["nothing-shared"], WORLD, PROCESSES)

    assert len(outcome.verdict.short) > outcome.verdict.gaps / 2


@pytest.mark.parametrize("name", CONTROLS)
def test_without_a_rule_that_keeps_the_gaps_some_are_short(name: str) -> None:
    # Which turns a signal meets is chance: a busy machine may let one run in some pass.
    short: list[str] = []
    with package_of(name) as package:
        for _ in range(_RUNS_OF_A_CONTROL):
            short += run(FAULTS[CONTROLS[name].fault], WORLD, PROCESSES, package=package).verdict.short
            if short:
                break

    assert short
