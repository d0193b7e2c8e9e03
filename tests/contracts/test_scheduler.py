"""What every Scheduler and every ValidatorStore does; a new one joins with a line. And the contract finds those that do not."""

import pytest

from polite import schedulers
from polite.errors import InvalidOption
from polite.frontier.checked_scheduler import SchedulerFailed
from polite.origin import Target
from polite.ports import Validators, ValidatorStore
from polite.stores.memory import MemoryValidators
from polite.stores.sqlite import SqliteStore
from polite.testing.contracts import SCHEDULER_CONTRACT, Check

MAKERS = [
    *(getattr(schedulers, name) for name in "Fifo Priority BreadthFirst Deadline RoundRobin".split()),
    lambda: schedulers.Ordered(lambda task: (len(task.url), task.url)),
    lambda: schedulers.RoundRobin(lambda task: -task.priority),
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("check", SCHEDULER_CONTRACT, ids=lambda check: check.__name__)
def test_a_scheduler_keeps_the_contract(check, make):
    check(make)


class Careless(schedulers.Fifo):
    def next(self):
        return min((tasks[0] for tasks in self._tasks.values()), key=lambda entry: entry[1])[2]


class Forgetful(schedulers.Fifo):
    def add(self, task):
        if task.origin.text not in self._ready:
            super().add(task)


class Greedy(schedulers.Fifo):
    def next(self):
        task = super().next()
        if self._tasks.get(task.origin.text):
            self.ready(task.origin)
        return task


@pytest.mark.parametrize("make", [Careless, Forgetful, Greedy])
def test_the_contract_finds_a_scheduler_that_breaks_it(make):
    def broken(check: Check) -> bool:
        try:
            check(make)
        except (AssertionError, SchedulerFailed):
            return True
        return False

    assert any(broken(check) for check in SCHEDULER_CONTRACT)


PAGE, OTHER = Target.of("https://site.test/page?q=1"), Target.of("https://site.test/page")
BOTH = Validators('W/"1"', "Sun, 06 Nov 1994 08:49:37 GMT")
TAG = Validators('"2"')


@pytest.fixture(params=["memory", "sqlite", "sqlite, with memory to fall back on"])
async def store(request, tmp_path):
    stores = {
        "memory": MemoryValidators,
        "sqlite": lambda: SqliteStore(tmp_path / "crawl.sqlite"),
        "sqlite, with memory to fall back on": lambda: SqliteStore(tmp_path, on_failure="memory"),
    }
    made = stores[request.param]()
    yield made
    await made.close()


async def test_what_was_remembered_comes_back_whole_and_at_once(store: ValidatorStore) -> None:
    store.remember(PAGE, BOTH)
    assert await store.validators(PAGE) == BOTH
    assert not await store.validators(OTHER)


async def test_the_latest_counts(store: ValidatorStore) -> None:
    for each in (TAG, BOTH, TAG):
        store.remember(PAGE, each)
    assert await store.validators(PAGE) == TAG


async def test_a_page_is_forgotten(store: ValidatorStore) -> None:
    store.remember(PAGE, BOTH)
    store.remember(PAGE, Validators())
    store.remember(OTHER, Validators())
    assert not await store.validators(PAGE)
    assert not await store.validators(OTHER)


async def test_it_is_there_after_a_close(store: ValidatorStore) -> None:
    store.remember(OTHER, TAG)
    store.remember(PAGE, BOTH)
    await store.close()
    await store.close()

    assert await store.validators(PAGE) == BOTH
    store.remember(PAGE, Validators())
    await store.close()
    assert not await store.validators(PAGE)
    assert await store.validators(OTHER) == TAG


def page(number: int) -> Target:
    return Target.of(f"https://site.test/{number}")


async def test_memory_forgets_the_page_that_was_reported_least_recently() -> None:
    store = MemoryValidators(max_urls=3)
    for number in (1, 2, 3, 1, 4):
        store.remember(page(number), TAG)
    assert [bool(await store.validators(page(number))) for number in range(1, 5)] == [True, False, True, True]


async def test_memory_is_bounded_in_octets_and_counts_back_to_nothing() -> None:
    store = MemoryValidators(max_memory=1 << 16)
    for number in range(1_000):
        store.remember(page(number), TAG)
        assert store.memory_used <= 1 << 16
    for number in range(1_000):
        store.remember(page(number), Validators())
    assert store.memory_used == 0


@pytest.mark.parametrize("options", [{"max_urls": 0}, {"max_urls": 1.5}, {"max_memory": 1}])
def test_memory_refuses_limits_that_are_none(options):
    with pytest.raises(InvalidOption, match=f"MemoryValidators: {next(iter(options))}"):
        MemoryValidators(**options)
