"""Each await of gate, origins, flight, fetch, pacer and store fails once, on every path of the demo and of broken hosts."""

import asyncio
import itertools
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path as File
from selectors import DefaultSelector
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest

from polite.ports import RobotsStore
from polite.stores.memory import MemoryStore
from polite.testing import VirtualTimeLoop
from tests.system.torture.crawl import Crawl, open_files
from tests.system.torture.saboteur import Failure, Place, Saboteur
from tests.system.torture.scenes import ALL, CHARGED, LATER, NESTED, OTHER_CALLS, REPLACED, SCENES, SHARED
from tests.system.torture.web import CHANGED, CLOSED, HOSTILE, MOVING, ONE_ADDRESS, PATHS, PAUSED, Path

T = TypeVar("T")
# Thousands of crawls, most of whose time would be the disk's: what is written here need not outlive the machine.
IN_MEMORY = File("/dev/shm") if File("/dev/shm").is_dir() else None
# Real seconds after which the loop looks around again, should a thread have forgotten to wake it.
_LOOK_AGAIN_S = 0.5


class PatientLoop(VirtualTimeLoop):
    """Virtual time does not run away while a thread thinks."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = 0
        jump = self._jumping.select

        def select(timeout: float | None = None) -> Any:
            if not self._threads or timeout == 0:
                return jump(timeout)
            return DefaultSelector.select(self._jumping, _LOOK_AGAIN_S)

        self._jumping.select = select  # type: ignore[method-assign]

    def wait_for(self, future: "asyncio.Future[Any]") -> None:
        self._threads += 1

        def answered(_: object) -> None:
            self._threads -= 1

        future.add_done_callback(answered)

    def run_in_executor(self, executor, func, *args):
        future = super().run_in_executor(executor, func, *args)
        self.wait_for(future)
        return future


class Suspending:
    """A store in memory that waits a step before and after each answer, as one of somebody's own would; it keeps back-offs."""

    def __init__(self) -> None:
        self._memory, self._holds = MemoryStore(), {}

    async def load(self, origin):
        return await _slowly(lambda: self._memory.load(origin))

    async def save(self, origin, snapshot):
        await _slowly(lambda: self._memory.save(origin, snapshot))

    def hold(self, origin, hold):
        self._holds[origin] = hold

    async def held(self, origin):
        await asyncio.sleep(0)
        return self._holds.get(origin)

    async def close(self) -> None:
        await _slowly(self._memory.close)


async def _slowly(work: Callable[[], Awaitable[T]]) -> T:
    await asyncio.sleep(0)
    answer = await work()
    await asyncio.sleep(0)
    return answer


# Stores: given a folder of its own, a store, or how `open_gate` is to make one.
Opening = Callable[[File], RobotsStore | str | None]
# What an earlier crawl of two hosts wrote; "filled" begins with it.
_TEMPLATES: list[File] = []


def filled(folder: File) -> str:
    name = folder / "crawl.sqlite"
    if not name.exists():
        shutil.copy(_TEMPLATES[0], name)
    return str(name)


STORES: dict[str, Opening] = {
    "none": lambda _: None,
    "memory": lambda _: Suspending(),
    "file": lambda folder: str(folder / "crawl.sqlite"),
    "filled": filled,
}


@pytest.fixture(scope="module", autouse=True)
def _template(tmp_path_factory: pytest.TempPathFactory) -> None:
    name = tmp_path_factory.mktemp("filled") / "crawl.sqlite"
    crawled(TWO, "gate", lambda _: str(name), Saboteur())
    _TEMPLATES[:] = [name]


def crawled(path: Path, scene: str, store: Opening, saboteur: Saboteur) -> None:
    """One crawl on a loop of its own, after which no descriptor is open that was not before."""

    async def main(folder: File) -> None:
        await Crawl(path, lambda: store(folder), saboteur).play(ALL[scene])

    before = open_files()
    with TemporaryDirectory(dir=IN_MEMORY) as folder, asyncio.Runner(loop_factory=PatientLoop) as runner:
        try:
            runner.run(main(File(folder)))
        except BaseException as error:
            error.add_note(f"{saboteur.failure} at {saboteur.at}: {saboteur.struck_at}, {saboteur.victim}")
            raise
    assert open_files() == before, "a descriptor is left open"


TWO = next(path for path in PATHS if path.name == "two at a time")
CASES = [
    (path, scene, store)
    for paths, scenes, stores in [
        (PATHS, ["gate"], ["memory", "file"]),
        ([TWO], [*SCENES, *OTHER_CALLS], ["none", "memory", "file"]),
        ([TWO], ["gate", "frontier"], ["filled"]),
        ([CHANGED, PAUSED], LATER, ["none", "memory", "file"]),
        # Another crawler was told since.
        ([CHANGED], SHARED, ["memory", "file"]),
        # Turns wait for opening hours and addresses, and a thread decides about long URLs.
        ([CLOSED, MOVING, ONE_ADDRESS, HOSTILE], SCENES, ["none"]),
        ([HOSTILE], SCENES, ["file"]),
        ([CLOSED], OTHER_CALLS, ["none"]),
        # Rules are replaced before a permit is entered.
        ([CHANGED, HOSTILE], REPLACED, ["none", "file"]),
        ([ONE_ADDRESS], [*LATER, *NESTED, *CHARGED], ["none"]),
    ]
    for path in paths
    for scene in scenes
    for store in stores
]


@pytest.mark.slow("each await of a crawl fails once", fast=40)
@pytest.mark.parametrize("failure", Failure, ids=lambda failure: failure.name)
@pytest.mark.parametrize(
    ("path", "scene", "store"), CASES, ids=[f"{path.name}-{scene}-{store}" for path, scene, store in CASES]
)
def test_nothing_is_stuck_lost_or_wrongly_allowed_when_an_await_fails(path, scene, store, failure):
    # Until an await later than the last would have to fail.
    for at in itertools.count():
        saboteur = Saboteur(at, failure)
        crawled(path, scene, STORES[store], saboteur)
        if saboteur.victim is None:
            assert at
            return


@pytest.mark.slow("all crawls of this file once")
@pytest.mark.pure("reads the lines of suspended coroutines, which compiled ones do not have")
def test_what_fails_are_many_awaits_in_many_places() -> None:
    seen: set[Place] = set()
    suspensions = 0
    for path, scene, store in CASES:
        saboteur = Saboteur()
        crawled(path, scene, STORES[store], saboteur)
        seen |= saboteur.places
        suspensions += saboteur.seen

    assert suspensions > 1_500
    assert len(seen) > 35
