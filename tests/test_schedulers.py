"""The orders in which tasks go, each by what it looks at; no loop, no clock."""

from typing import Any

import pytest

from polite import schedulers
from polite.origin import Origin, Target
from polite.ports import Scheduler
from polite.task import Task

A, B, C = (Origin.of(f"https://{name}.test") for name in "abc")


def task(number: int, origin: Origin = A, **options: Any) -> Task:
    return Task(target=Target(origin, f"/{number}"), number=number, **options)


def in_order(scheduler: Scheduler, *tasks: Task) -> list[int]:
    """The numbers of all, when every origin is ready all the time."""
    waiting: dict[Origin, int] = {}
    for each in tasks:
        scheduler.add(each)
        waiting[each.origin] = waiting.get(each.origin, 0) + 1
    for origin in waiting:
        scheduler.ready(origin)
    order = []
    for _ in tasks:
        chosen = scheduler.next()
        order.append(chosen.number)
        waiting[chosen.origin] -= 1
        if waiting[chosen.origin]:
            scheduler.ready(chosen.origin)
    return order


def test_fifo_gives_the_first_that_was_put() -> None:
    assert in_order(schedulers.Fifo(), task(3), task(1, B), task(2), task(4, B)) == [1, 2, 3, 4]


def test_priority_gives_the_greatest_and_equal_ones_as_they_were_put() -> None:
    tasks = [
        task(1),
        task(2, B, priority=2),
        task(3, priority=5),
        task(4, priority=2),
        task(5, B, priority=-1),
    ]

    assert in_order(schedulers.Priority(), *tasks) == [3, 2, 4, 1, 5]


def test_breadth_first_gives_the_least_depth() -> None:
    tasks = [task(1, depth=2), task(2, B, depth=1), task(3, depth=1), task(4, B)]

    assert in_order(schedulers.BreadthFirst(), *tasks) == [4, 2, 3, 1]


def test_deadline_gives_the_earliest_and_those_without_one_last() -> None:
    tasks = [task(1), task(2, B, deadline=20.0), task(3, deadline=10.0), task(4, B)]

    assert in_order(schedulers.Deadline(), *tasks) == [3, 2, 1, 4]


def test_ordered_takes_any_key() -> None:
    scheduler = schedulers.Ordered(lambda task: task.payload)

    assert in_order(scheduler, task(1, payload="b"), task(2, payload="c"), task(3, B, payload="a")) == [
        3,
        1,
        2,
    ]


def test_round_robin_gives_the_origins_in_turn() -> None:
    tasks = [task(n, A) for n in (1, 2, 3)] + [task(n, B) for n in (4, 5)] + [task(6, C)]

    assert in_order(schedulers.RoundRobin(), *tasks) == [1, 4, 6, 2, 5, 3]


def test_round_robin_takes_an_order_within_origins() -> None:
    tasks = [task(1), task(2, priority=1), task(3, B), task(4, B, priority=1)]

    assert in_order(schedulers.RoundRobin(lambda task: -task.priority), *tasks) == [2, 4, 1, 3]


def test_an_origin_that_comes_new_stands_behind_those_that_wait() -> None:
    scheduler = schedulers.RoundRobin()
    for each in (task(1), task(2), task(3, B)):
        scheduler.add(each)
    scheduler.ready(A)
    scheduler.next()
    scheduler.add(task(4, C))
    for origin in (C, A, B):
        scheduler.ready(origin)

    assert [scheduler.next().origin for _ in range(3)] == [B, A, C]


def test_a_better_task_that_comes_while_its_origin_is_ready_is_chosen() -> None:
    scheduler = schedulers.Priority()
    for each in (task(1), task(2, B, priority=1)):
        scheduler.add(each)
        scheduler.ready(each.origin)
    scheduler.add(task(3, priority=2))

    assert scheduler.next().number == 3


@pytest.mark.parametrize("make", [schedulers.Fifo, schedulers.RoundRobin])
def test_no_choice_without_an_origin_that_is_ready(make: Any) -> None:
    scheduler = make()
    scheduler.add(task(1))

    with pytest.raises(LookupError):
        scheduler.next()


def test_an_ordered_scheduler_keeps_nothing_for_tasks_that_are_gone() -> None:
    scheduler = schedulers.Priority()
    scheduler.add(task(1))
    for number in range(2, 1_000):
        # The first is listed as the origin's best, again and again, and a better one comes each time.
        scheduler.ready(A)
        scheduler.add(task(number, priority=1))
        scheduler.next()

    assert len(scheduler._firsts) <= 1
    assert len(scheduler._listed) <= 1


def test_a_round_robin_keeps_nothing_for_origins_without_tasks() -> None:
    scheduler = schedulers.RoundRobin()
    in_order(scheduler, *(task(n, Origin.of(f"https://h{n}.test")) for n in range(100)))

    assert (scheduler._tasks, scheduler._since, scheduler._ready) == ({}, {}, [])
