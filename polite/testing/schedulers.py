"""SCHEDULER_CONTRACT: checks for schedulers of your own.

Each takes a function that makes a scheduler, and raises AssertionError.

    @pytest.mark.parametrize("check", SCHEDULER_CONTRACT, ids=lambda check: check.__name__)
    def test_my_scheduler(check):
        check(MyScheduler)
"""

import random
from collections.abc import Callable
from dataclasses import replace

from polite.frontier.checked_scheduler import CheckedScheduler
from polite.origin import Target
from polite.ports import Scheduler
from polite.task import Task

Make = Callable[[], Scheduler]
Check = Callable[[Make], None]
"""One check: takes a function that makes a scheduler, and raises AssertionError."""


def _tasks(count: int, origins: int) -> list[Task]:
    """Return tasks of several origins with different attributes."""
    chance = random.Random(count)
    return [
        Task(
            target=Target.of(f"https://host{number % origins}.example/{number}"),
            number=number,
            priority=chance.randrange(5),
            depth=chance.randrange(5),
            deadline=chance.choice([None, chance.random()]),
        )
        for number in range(1, count + 1)
    ]


def _require(message: str, *, that: bool) -> None:
    if not that:
        raise AssertionError(message)


def gives_what_was_added(make: Make) -> None:
    """Check that the only task of the only origin is chosen."""
    (task,) = _tasks(1, 1)
    scheduler = make()
    scheduler.add(task)
    scheduler.ready(task.origin)
    _require("the only task that waits must be chosen", that=scheduler.next() is task)


def gives_each_task_once(make: Make) -> None:
    """Check that each task is chosen once if its origin is ready again and again."""
    checked, tasks = CheckedScheduler(make()), _tasks(200, 7)
    for task in tasks:
        checked.add(task)
    chosen: list[int] = []
    while len(chosen) < len(tasks):
        # The origin of the first task that waits.
        checked.ready(checked.tasks[0].origin)
        chosen.append(checked.next().number)
    _require("each task must be chosen once", that=len(set(chosen)) == len(tasks))


def chooses_of_ready_origins_only(make: Make) -> None:
    """Check that tasks of other origins wait, whatever their attributes."""
    tasks = _tasks(60, 6)
    for ready in {task.origin for task in tasks}:
        checked = CheckedScheduler(make())
        for task in tasks:
            checked.add(task)
        checked.ready(ready)
        _require("the task must be one of the origin that is ready", that=checked.next().origin == ready)


def an_origin_is_ready_for_one_task(make: Make) -> None:
    """Check that an origin is no longer ready after a choice, even if it has more tasks."""
    tasks = _tasks(40, 4)
    checked = CheckedScheduler(make())
    for task in tasks:
        checked.add(task)
    for origin in {task.origin for task in tasks}:
        checked.ready(origin)
    chosen = {checked.next().origin for _ in range(4)}
    _require("four origins were ready, so each must be chosen once", that=len(chosen) == 4)


def a_task_may_be_added_while_its_origin_is_ready(make: Make) -> None:
    """Check that a task which is added to a ready origin is queued like the others."""
    first, second, third = _tasks(3, 1)
    checked = CheckedScheduler(make())
    checked.add(first)
    checked.ready(first.origin)
    checked.add(second)
    chosen = [checked.next()]
    checked.add(third)
    for _ in range(2):
        checked.ready(first.origin)
        chosen.append(checked.next())
    _require("all three must be chosen", that={task.number for task in chosen} == {1, 2, 3})


def a_chosen_task_may_be_requeued(make: Make) -> None:
    """Check that a chosen task can be added again, unchanged or with one more try."""
    (task,) = _tasks(1, 1)
    checked = CheckedScheduler(make())
    for each in (task, task, replace(task, tries=1)):
        checked.add(each)
        checked.ready(task.origin)
        _require("a requeued task must be chosen like any other", that=checked.next() is each)


def holds_in_any_mixture(make: Make) -> None:
    """Check thousands of additions, ready origins and choices in random order."""
    chance, checked = random.Random(9), CheckedScheduler(make())
    waiting: dict[object, int] = {}
    ready: set[object] = set()
    for task in _tasks(3_000, 40):
        checked.add(task)
        waiting[task.origin] = waiting.get(task.origin, 0) + 1
        if task.origin not in ready and chance.random() < 0.7:
            checked.ready(task.origin)
            ready.add(task.origin)
        while ready and chance.random() < 0.6:
            chosen = checked.next()
            ready.discard(chosen.origin)
            waiting[chosen.origin] -= 1
            if chance.random() < 0.1:
                checked.add(chosen)
                waiting[chosen.origin] += 1
            if waiting[chosen.origin] and chance.random() < 0.5:
                checked.ready(chosen.origin)
                ready.add(chosen.origin)
    left = sum(waiting.values())
    _require(f"{left} tasks must be left, not {len(checked.tasks)}", that=len(checked.tasks) == left)


SCHEDULER_CONTRACT: tuple[Check, ...] = (
    gives_what_was_added,
    gives_each_task_once,
    chooses_of_ready_origins_only,
    an_origin_is_ready_for_one_task,
    a_task_may_be_added_while_its_origin_is_ready,
    a_chosen_task_may_be_requeued,
    holds_in_any_mixture,
)
"""The checks that a scheduler of your own must pass, for `pytest.mark.parametrize`."""
