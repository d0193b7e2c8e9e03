"""Tasks that polite starts for itself: their first step runs later, whatever the loop's task factory does."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def start_later(work: Callable[[], Coroutine[Any, Any, T]], *, name: str | None = None) -> asyncio.Task[T]:
    """Create a task that does not run before this function has returned.

    `asyncio.eager_task_factory` (Python 3.12 and later) runs a task up to its first wait inside `create_task`, when the caller
    has not yet recorded that the task exists. A task cancelled before its first step never calls `work`.
    """
    starting = True

    async def run() -> T:
        if starting:
            await asyncio.sleep(0)
        return await work()

    task = asyncio.create_task(run(), name=name)
    starting = False
    return task
