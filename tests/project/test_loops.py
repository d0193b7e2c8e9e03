"""The eager tasks of `./dev matrix` are those that users have, so libraries that know these know ours."""

import asyncio
import sys

import anyio
import pytest

from tests.project import loops

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="no eager tasks")


async def test_tasks_begin_at_once() -> None:
    asyncio.get_running_loop().set_task_factory(loops.eager_factory())
    begun = asyncio.Event()

    async def begin() -> None:
        begun.set()

    task = asyncio.create_task(begin())

    assert begun.is_set()
    await task


async def test_task_groups_of_anyio_work() -> None:
    asyncio.get_running_loop().set_task_factory(loops.eager_factory())
    entered = []

    async def enter() -> None:
        with anyio.CancelScope() as scope:
            await asyncio.sleep(0)
            entered.append(scope)

    async with anyio.create_task_group() as group:
        group.start_soon(enter)

    assert len(entered) == 1
