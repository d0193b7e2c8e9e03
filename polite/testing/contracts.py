"""SCHEDULER_CONTRACT and STORE_CONTRACT: checks for schedulers and stores of your own.

Each takes a function that makes a scheduler, or opens an empty store, and raises AssertionError. Those of stores are coroutine
functions.

    @pytest.mark.parametrize("check", SCHEDULER_CONTRACT, ids=lambda check: check.__name__)
    def test_my_scheduler(check):
        check(MyScheduler)

    @pytest.mark.parametrize("check", STORE_CONTRACT, ids=lambda check: check.__name__)
    def test_my_store(check, tmp_path):
        asyncio.run(check(lambda: MyStore(tmp_path)))

If the store's clock is not the system's, pass what it says: `check(MyStore, now=120.0)` (Unix time).
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import product

from polite.frontier.checked_scheduler import CheckedScheduler
from polite.origin import Origin, Target
from polite.ports import BackOffStore, RobotsStore, SavedBackOff, Scheduler
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.task import Task

MakeScheduler = Callable[[], Scheduler]
Check = Callable[[MakeScheduler], None]
"""One check: takes a function that makes a scheduler, and raises AssertionError."""
Make = Callable[[], RobotsStore]
StoreCheck = Callable[..., Awaitable[None]]
"""One check: takes a function that opens an empty store, and perhaps `now`, and raises AssertionError."""


def _require(message: str, *, that: bool) -> None:
    if not that:
        raise AssertionError(message)


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


def gives_each_task_once(make: MakeScheduler) -> None:
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


def chooses_of_ready_origins_only(make: MakeScheduler) -> None:
    """Check that tasks of other origins wait, whatever their attributes."""
    tasks = _tasks(60, 6)
    for ready in {task.origin for task in tasks}:
        checked = CheckedScheduler(make())
        for task in tasks:
            checked.add(task)
        checked.ready(ready)
        _require("the task must be one of the origin that is ready", that=checked.next().origin == ready)


def an_origin_is_ready_for_one_task(make: MakeScheduler) -> None:
    """Check that an origin is no longer ready after a choice, even if it has more tasks."""
    tasks = _tasks(40, 4)
    checked = CheckedScheduler(make())
    for task in tasks:
        checked.add(task)
    for origin in {task.origin for task in tasks}:
        checked.ready(origin)
    chosen = {checked.next().origin for _ in range(4)}
    _require("four origins were ready, so each must be chosen once", that=len(chosen) == 4)


def a_task_may_be_added_while_its_origin_is_ready(make: MakeScheduler) -> None:
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


def a_chosen_task_may_be_requeued(make: MakeScheduler) -> None:
    """Check that a chosen task can be added again, unchanged or with one more try."""
    (task,) = _tasks(1, 1)
    checked = CheckedScheduler(make())
    for each in (task, task, replace(task, tries=1)):
        checked.add(each)
        checked.ready(task.origin)
        _require("a requeued task must be chosen like any other", that=checked.next() is each)


def holds_in_any_mixture(make: MakeScheduler) -> None:
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
    gives_each_task_once,
    chooses_of_ready_origins_only,
    an_origin_is_ready_for_one_task,
    a_task_may_be_added_while_its_origin_is_ready,
    a_chosen_task_may_be_requeued,
    holds_in_any_mixture,
)
"""The checks that a scheduler of your own must pass, for `pytest.mark.parametrize`."""


_SITE, _OTHER = Origin.of("https://site.example/"), Origin.of("http://site.example/")
_POLICY = RobotsPolicy()


class _Times:
    """Snapshots at times some seconds from now."""

    def __init__(self, now: float | None) -> None:
        # Whole seconds: a store may convert dates to another clock, and back.
        self._now = float(int(time.time() if now is None else now))

    def good(self, at: float, body: bytes = b"Disallow: /") -> Snapshot:
        return renewed(None, Found(body, 200, _SITE.robots_url), _POLICY, self._now + at)

    def gone(self, at: float) -> Snapshot:
        return renewed(None, Unavailable(Reason.CLIENT_ERROR, _SITE.robots_url, 404), _POLICY, self._now + at)

    def failed(
        self, at: float, before: Snapshot | None = None, retry_after_s: float | None = None
    ) -> Snapshot:
        access = Unreachable(Reason.SERVER_ERROR, _SITE.robots_url, 503, retry_after_s=retry_after_s)
        return renewed(before, access, _POLICY, self._now + at)

    def back_off(self, since: float, until: float, because: str = "status 429") -> SavedBackOff:
        return SavedBackOff(self._now + since, self._now + until, because)


async def _merged(store: RobotsStore, number: int, one: Snapshot, other: Snapshot) -> Snapshot:
    """Return what is kept of both, which must be the same whichever is saved first. `number`: another one for each call."""
    first, second = Origin.of(f"https://a{number}.example/"), Origin.of(f"https://b{number}.example/")
    for origin, snapshots in ((first, (one, other)), (second, (other, one))):
        for snapshot in snapshots:
            await store.save(origin, snapshot)
    kept, reversed_ = await store.load(first), await store.load(second)
    _require("of two snapshots the same must be kept, whichever is saved first", that=kept == reversed_)
    if kept is None:
        raise AssertionError("of two snapshots that were saved, load must return what both say")
    return kept


async def returns_none_for_an_unknown_origin(make: Make, *, now: float | None = None) -> None:
    """Check that nothing is known of an origin that was never saved, also if another one was."""
    store = make()
    _require("load must return None for an origin that was never saved", that=await store.load(_SITE) is None)
    await store.save(_SITE, _Times(now).good(0))
    _require("origins of one host must be kept apart", that=await store.load(_OTHER) is None)


async def returns_what_was_saved(make: Make, *, now: float | None = None) -> None:
    """Check that snapshots of each kind come back with each field as it was."""
    times, store = _Times(now), make()
    file = Found(bytes(range(256)) * 40, 203, f"{_SITE}/moved", 2, capped=True, elapsed_s=0.5, max_age_s=60.0)
    late = Unreachable(Reason.TIMEOUT, "", detail="5 s, né", probes=1)
    kinds = [
        times.good(0),
        times.good(0, b""),
        times.gone(0),
        times.failed(0),
        times.failed(0, times.good(-60), retry_after_s=7_200.0),
        renewed(None, replace(file, downgraded=True), _POLICY, times.good(0).fetched_at),
        renewed(times.gone(-60), late, _POLICY, times.good(0).fetched_at),
    ]
    for number, snapshot in enumerate(kinds):
        origin = Origin.of(f"https://kind{number}.example/")
        await store.save(origin, snapshot)
        found = await store.load(origin)
        _require(f"load must return {snapshot!r}, not {found!r}", that=found == snapshot)


async def keeps_the_later_answer(make: Make, *, now: float | None = None) -> None:
    """Check that a later answer of the server counts as it is, in whatever order both are saved."""
    times, store = _Times(now), make()
    earlier = (times.good(-10, b"Allow: /"), times.gone(-10), times.failed(-10))
    for number, (before, later) in enumerate(product(earlier, (times.good(0), times.gone(0)))):
        kept = await _merged(store, number, before, later)
        _require("the later answer of the server must be kept as it is: see merged", that=kept == later)


async def keeps_the_good_copy_beside_a_failure(make: Make, *, now: float | None = None) -> None:
    """Check that a later failure leaves the good copy, and that an earlier one changes nothing."""
    times, store = _Times(now), make()
    for number, copy in enumerate((times.good(-10), times.gone(-10))):
        failure = times.failed(0, before=times.failed(-60), retry_after_s=86_000)
        kept = await _merged(store, number, copy, failure)
        result = (kept.access, kept.expires_at, kept.good, kept.good_at, kept.good_until)
        expected = (failure.access, failure.expires_at, copy.access, copy.fetched_at, copy.expires_at)
        _require("a failure must be kept with the good copy of before: see merged", that=result == expected)
    late = times.good(0)
    kept = await _merged(store, 2, late, times.failed(-10, retry_after_s=86_000))
    _require("a failure before the answer must change nothing: see merged", that=kept == late)


async def keeps_the_longer_back_off_of_two_failures(make: Make, *, now: float | None = None) -> None:
    """Check that of two failures the younger copy, the longer back-off, and the first failure are kept."""
    times, store = _Times(now), make()
    copy = times.good(-60)
    longer = times.failed(-10, copy, retry_after_s=86_000)
    later = times.failed(0, times.good(-100, b"Allow: /"))
    kept = await _merged(store, 1, longer, later)
    result = (kept.access, kept.fetched_at, kept.expires_at, kept.good, kept.good_until)
    expected = (later.access, later.fetched_at, longer.expires_at, copy.good, copy.expires_at)
    _require("another failure must not shorten a running back-off: see merged", that=result == expected)
    first = times.failed(-10)
    again = await _merged(store, 2, first, times.failed(0, before=first))
    right = (again.unreachable_since, again.failures) == (first.fetched_at, 2)
    _require("the 30 days count from the first failure of the row", that=right)


async def saves_at_one_time_end_as_if_in_turn(make: Make, *, now: float | None = None) -> None:
    """Check that saves that overlap lose nothing, neither of one origin nor of many."""
    times, store = _Times(now), make()
    copy = times.good(0)
    saved = (copy, times.failed(-10), times.failed(-9), times.gone(-10))
    await asyncio.gather(*(store.save(_SITE, snapshot) for snapshot in saved))
    _require("reading and writing must be one step of save", that=await store.load(_SITE) == copy)
    origins = [Origin.of(f"https://host{number}.example/") for number in range(50)]
    snapshots = [times.good(0, b"Disallow: /%d" % number) for number in range(50)]
    await asyncio.gather(*map(store.save, origins, snapshots))
    found = await asyncio.gather(*map(store.load, origins))
    _require("saves of many origins at one time must not disturb each other", that=found == snapshots)


async def can_be_used_after_close(make: Make, *, now: float | None = None) -> None:
    """Check that close may be called twice, and that another gate may use the store afterwards."""
    store, snapshot = make(), _Times(now).good(0)
    await store.save(_SITE, snapshot)
    await store.close()
    await store.close()
    _require("what was saved must be there for the next gate", that=await store.load(_SITE) == snapshot)
    await store.close()


async def keeps_the_back_off_that_ends_last(make: Make, *, now: float | None = None) -> None:
    """Check that of several back-offs the one that ends last is kept. A store that is no BackOffStore passes."""
    store, times = make(), _Times(now)
    if not isinstance(store, BackOffStore):
        return
    _require("held must return None for an unknown origin", that=await store.held(_SITE) is None)
    longest = times.back_off(-10, 3_600, "status 429, Retry-After 3610 s")
    for back_off in (times.back_off(-20, 600), longest, times.back_off(0, 60)):
        store.hold(_SITE, back_off)
        await store.save(_SITE, times.good(0))
    found = await store.held(_SITE)
    _require(f"held must return {longest}, not {found}", that=found == longest)
    _require("origins of one host must be kept apart", that=await store.held(_OTHER) is None)
    store.hold(_OTHER, longest)
    await store.close()
    store.hold(_OTHER, times.back_off(0, 10))  # a permit may end after its gate
    await store.close()
    _require("a back-off must be kept once close has returned", that=await store.held(_OTHER) == longest)
    await store.close()


STORE_CONTRACT: tuple[StoreCheck, ...] = (
    returns_none_for_an_unknown_origin,
    returns_what_was_saved,
    keeps_the_later_answer,
    keeps_the_good_copy_beside_a_failure,
    keeps_the_longer_back_off_of_two_failures,
    saves_at_one_time_end_as_if_in_turn,
    can_be_used_after_close,
    keeps_the_back_off_that_ends_last,
)
"""The checks that a store of your own must pass, for `pytest.mark.parametrize`."""
