"""The orders in which tasks go, each by what it looks at; no loop, no clock."""

import pytest

from polite.origin import Origin, Target
from polite.schedulers import BreadthFirst, Deadline, Fifo, Ordered, Priority, RoundRobin
from polite.task import Task

A, B, C = (Origin.of(f"https://{name}.test") for name in "abc")


def task(number, origin=A, **options):
    return Task(target=Target(origin, f"/{number}"), number=number, **options)


def in_order(scheduler, *tasks):
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


@pytest.mark.parametrize(
    ("scheduler", "tasks", "order"),
    [
        (Fifo(), [task(3), task(1, B), task(2), task(4, B)], [1, 2, 3, 4]),
        (
            Priority(),
            [task(1), task(2, B, priority=2), task(3, priority=5), task(4, B, priority=-1)],
            [3, 2, 1, 4],
        ),
        (BreadthFirst(), [task(1, depth=2), task(2, B, depth=1), task(3, depth=1), task(4, B)], [4, 2, 3, 1]),
        (Deadline(), [task(1), task(2, B, deadline=20.0), task(3, deadline=10.0), task(4, B)], [3, 2, 1, 4]),
        (
            Ordered(lambda task: task.payload),
            [task(1, payload="b"), task(2, payload="c"), task(3, B, payload="a")],
            [3, 1, 2],
        ),
        (RoundRobin(), [*map(task, (1, 2, 3)), task(4, B), task(5, B), task(6, C)], [1, 4, 6, 2, 5, 3]),
        (
            RoundRobin(lambda task: -task.priority),
            [task(1), task(2, priority=1), task(3, B), task(4, B, priority=1)],
            [2, 4, 1, 3],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_scheduler_has_its_order(scheduler, tasks, order):
    assert in_order(scheduler, *tasks) == order


def test_an_origin_that_comes_new_stands_behind_those_that_wait() -> None:
    scheduler = RoundRobin()
    for each in (task(1), task(2), task(3, B)):
        scheduler.add(each)
    scheduler.ready(A)
    scheduler.next()
    scheduler.add(task(4, C))
    for origin in (C, A, B):
        scheduler.ready(origin)

    assert [scheduler.next().origin for _ in range(3)] == [B, A, C]


def test_a_better_task_that_comes_while_its_origin_is_ready_is_chosen() -> None:
    scheduler = Priority()
    for each in (task(1), task(2, B, priority=1)):
        scheduler.add(each)
        scheduler.ready(each.origin)
    scheduler.add(task(3, priority=2))
    assert scheduler.next().number == 3


@pytest.mark.parametrize("make", [Fifo, RoundRobin])
def test_no_choice_without_an_origin_that_is_ready(make):
    scheduler = make()
    scheduler.add(task(1))
    with pytest.raises(LookupError):
        scheduler.next()


def test_nothing_is_kept_for_tasks_that_are_gone() -> None:
    scheduler, in_turn = Priority(), RoundRobin()
    in_order(in_turn, *(task(n, Origin.of(f"https://h{n}.test")) for n in range(100)))
    scheduler.add(task(1))
    for number in range(2, 1_000):
        # The first is listed as the origin's best, again and again, and a better one comes each time.
        scheduler.ready(A)
        scheduler.add(task(number, priority=1))
        scheduler.next()

    assert (in_turn._tasks, in_turn._since, in_turn._ready) == ({}, {}, [])
    assert len(scheduler._firsts) <= 1
    assert len(scheduler._listed) <= 1
