"""The stores that a crawl under torture keeps its results in."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path as File
from typing import TypeVar

from polite.origin import Origin
from polite.ports import BackOffStore, RobotsStore, SavedBackOff
from polite.robots.snapshot import Snapshot
from polite.stores.memory import MemoryStore

T = TypeVar("T")
Store = RobotsStore | str | None
# Given a folder of its own, a store, or how `open_gate` is to make one.
Opening = Callable[[File], Store]


class Suspending:
    """A store in memory that waits a step before and after each answer, as one of somebody's own would; it keeps back-offs."""

    def __init__(self) -> None:
        self._memory = MemoryStore()
        self._holds: dict[Origin, SavedBackOff] = {}

    async def load(self, origin: Origin) -> Snapshot | None:
        return await _slowly(lambda: self._memory.load(origin))

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        await _slowly(lambda: self._memory.save(origin, snapshot))

    def hold(self, origin: Origin, hold: SavedBackOff) -> None:
        self._holds[origin] = hold

    async def held(self, origin: Origin) -> SavedBackOff | None:
        await asyncio.sleep(0)
        return self._holds.get(origin)

    async def close(self) -> None:
        await _slowly(self._memory.close)


async def _slowly(work: Callable[[], Awaitable[T]]) -> T:
    await asyncio.sleep(0)
    answer = await work()
    await asyncio.sleep(0)
    return answer


assert isinstance(Suspending(), BackOffStore)


def filled(template: File) -> Opening:
    """A file with what an earlier crawl wrote."""

    def copied(folder: File) -> str:
        name = folder / "crawl.sqlite"
        if not name.exists():
            shutil.copy(template, name)
        return str(name)

    return copied


STORES: dict[str, Opening] = {
    "none": lambda _: None,
    "memory": lambda _: Suspending(),
    "file": lambda folder: str(folder / "crawl.sqlite"),
}
