"""What is called when a gate closes."""

import asyncio
import gc

import pytest

import polite
from polite.gate.services import Shutdown
from polite.origin import Origin
from polite.robots.snapshot import Snapshot
from polite.stores.memory import MemoryStore
from polite.testing import LoopClock, ScriptedTransport
from tests.support import now, scripted_gate


class Listening:
    def __init__(self, told: list[str]) -> None:
        self._told = told

    def closed(self) -> None:
        self._told.append("closed")


async def test_a_callback_is_called_once_when_the_gate_closes() -> None:
    told: list[str] = []
    async with polite.open_gate("TestBot/1.0", clock=LoopClock()) as gate:
        gate.on_close(lambda: told.append("closed"))
        gc.collect()
        assert not told
        await gate.close()

        assert told == ["closed"]
    assert told == ["closed"]


def test_the_object_of_a_bound_method_is_held_weakly() -> None:
    told: list[str] = []
    shutdown, kept, dropped = Shutdown(), Listening(told), Listening(told)
    shutdown.on_begin(dropped.closed)
    shutdown.on_begin(kept.closed)
    del dropped
    gc.collect()

    assert len(shutdown._callbacks) == 1
    shutdown.begin()
    assert told == ["closed"]


def test_a_callback_that_fails_hinders_no_other(caplog) -> None:
    told: list[str] = []
    shutdown = Shutdown()
    shutdown.on_begin(lambda: 1 / 0)
    shutdown.on_begin(lambda: told.append("closed"))

    shutdown.begin()

    assert told == ["closed"]
    assert "a callback of Gate.on_close failed" in caplog.text


class SlowStore(MemoryStore):
    """A store that takes a while to keep a robots.txt."""

    def __init__(self, takes_s: float) -> None:
        super().__init__()
        self._takes_s = takes_s
        self.saving = asyncio.Event()
        self.saved: list[Origin] = []

    async def save(self, origin: Origin, snapshot: Snapshot) -> None:
        self.saving.set()
        await asyncio.sleep(self._takes_s)
        self.saved.append(origin)


@pytest.mark.virtual_time
@pytest.mark.parametrize("is_waiter_cancelled", [True, False])
@pytest.mark.parametrize(("takes_s", "is_saved", "closed_s"), [(0.2, True, 0.2), (1e6, False, 5.0)])
async def test_a_robots_txt_that_was_fetched_is_kept_though_the_gate_closes(
    is_waiter_cancelled: bool, takes_s: float, is_saved: bool, closed_s: float
) -> None:
    store = SlowStore(takes_s)
    origin = Origin.of("https://a.test")
    async with scripted_gate(transports={"https": ScriptedTransport()}, store=store) as gate:
        waiter = asyncio.create_task(gate.check("https://a.test/"))
        await store.saving.wait()
        closing_at = now()
        if is_waiter_cancelled:
            waiter.cancel()
            await asyncio.sleep(0)
    closed_at = now()
    (ended,) = await asyncio.gather(waiter, return_exceptions=True)

    assert isinstance(ended, asyncio.CancelledError if is_waiter_cancelled else polite.GateClosed)
    assert store.saved == ([origin] if is_saved else [])
    assert closed_at - closing_at == pytest.approx(closed_s, abs=0.01)
