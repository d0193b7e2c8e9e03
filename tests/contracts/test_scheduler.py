"""What every Scheduler does; a new one joins with a line. And the contract finds those that do not."""

from collections.abc import Callable

import pytest

from polite import schedulers
from polite.frontier.checked_scheduler import SchedulerFailed
from polite.ports import Scheduler
from polite.task import Task
from polite.testing.contracts import SCHEDULER_CONTRACT, Check

MAKERS = [
    schedulers.Fifo,
    schedulers.Priority,
    schedulers.BreadthFirst,
    schedulers.Deadline,
    schedulers.RoundRobin,
    lambda: schedulers.Ordered(lambda task: (len(task.url), task.url)),
    lambda: schedulers.RoundRobin(lambda task: -task.priority),
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("check", SCHEDULER_CONTRACT, ids=lambda check: check.__name__)
def test_a_scheduler_keeps_the_contract(check: Check, make: Callable[[], Scheduler]) -> None:
    check(make)


class Careless(schedulers.Fifo):
    """Never minds who is ready."""

    def next(self) -> Task:
        return min((tasks[0] for tasks in self._tasks.values()), key=lambda entry: entry[1])[2]


class Forgetful(schedulers.Fifo):
    def add(self, task: Task) -> None:
        if task.origin.text not in self._ready:
            super().add(task)


class Greedy(schedulers.Fifo):
    """Takes a ready origin as ready for ever."""

    def next(self) -> Task:
        task = super().next()
        if self._tasks.get(task.origin.text):
            self.ready(task.origin)
        return task


@pytest.mark.parametrize("make", [Careless, Forgetful, Greedy])
def test_the_contract_finds_a_scheduler_that_breaks_it(make: Callable[[], Scheduler]) -> None:
    def broken(check: Check) -> bool:
        try:
            check(make)
        except (AssertionError, SchedulerFailed):
            return True
        return False

    assert any(broken(check) for check in SCHEDULER_CONTRACT)
