"""Tasks of polite's own begin after their starter has gone on, under any task factory."""

import asyncio
import sys

import pytest

from polite.gate.single_flight import start_later
from tests.project.loops import eager_on_uvloop


@pytest.fixture(
    params=[
        "later",
        pytest.param(
            "at once", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="no eager tasks")
        ),
    ]
)
async def factory(request) -> None:
    """When the loop's task factory takes a task's first step."""
    loop = asyncio.get_running_loop()
    on_uvloop = not isinstance(loop, asyncio.BaseEventLoop)
    if request.param == "at once" and on_uvloop and not eager_on_uvloop():
        pytest.skip(
            "uvloop 0.23 (its #748) passes eager_start, which the factory of this Python (3.13.0) refuses"
        )
    loop.set_task_factory(asyncio.eager_task_factory if request.param == "at once" else None)


async def test_a_task_begins_in_a_later_step_with_its_name_and_gives_its_result(factory) -> None:
    async def work() -> str:
        seen.append("work")
        current = asyncio.current_task()
        assert current is not None
        return current.get_name()

    seen: list[str] = []
    task = start_later(work, name="mine")
    seen.append("starter")

    assert await task == "mine"
    assert seen == ["starter", "work"]


async def test_a_task_cancelled_before_its_first_step_does_nothing(factory) -> None:
    async def work() -> None:
        pytest.fail("it was cancelled")

    task = start_later(work)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
