"""What is called when a gate closes."""

import gc

import polite
from polite.gate.shutdown import Shutdown
from polite.testing import LoopClock


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


async def test_a_callback_is_called_at_once_by_a_gate_that_is_closed() -> None:
    told: list[str] = []
    async with polite.open_gate("TestBot/1.0", clock=LoopClock()) as gate:
        await gate.close()
        gate.on_close(lambda: told.append("closed"))

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
