"""A loop in which each commit of a file takes time, so that everything else happens while a batch is under way."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from polite.testing import VirtualTimeLoop

# Calls of the file's thread; a crawl that needs more runs in circles.
MOST_CALLS = 50_000


class OverlappingLoop(VirtualTimeLoop):
    """What a thread is asked for is done at once, and is answered `delay()` virtual seconds later."""

    def __init__(self, delay: Callable[[], float]) -> None:
        super().__init__()
        self._delay, self.calls = delay, 0

    def run_in_executor(self, executor, func, *args):
        self.calls += 1
        assert self.calls < MOST_CALLS, "the file is asked in circles"
        answer = self.create_future()
        value, error = None, None
        try:
            value = func(*args)
        except Exception as failure:
            error = failure
        self.call_later(self._delay(), _settle, answer, value, error)
        return answer


def _settle(answer: "asyncio.Future[Any]", value: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(value)
    else:
        answer.set_exception(error)


def run_slowly(work: Coroutine[Any, Any, Any], delay: Callable[[], float] = lambda: 0.02) -> Any:
    """Run the work in virtual time; each commit takes `delay()` seconds."""
    with asyncio.Runner(loop_factory=lambda: OverlappingLoop(delay)) as runner:
        return runner.run(work)
