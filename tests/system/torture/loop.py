"""An event loop in virtual time that waits for threads: while one of them has work of ours, no time passes."""

import asyncio
from collections.abc import Callable
from typing import Any

from polite.testing import VirtualTimeLoop

# Real seconds after which the loop looks around again, should a thread have forgotten to wake it.
_LOOK_AGAIN_S = 0.5


class PatientLoop(VirtualTimeLoop):
    """Virtual time does not run away while a thread thinks."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = 0
        jump, real = self._jumping.select, self._jumping._real

        def select(timeout: float | None = None) -> Any:
            if not self._threads or timeout == 0:
                return jump(timeout)
            return real.select(_LOOK_AGAIN_S)

        self._jumping.select = select  # type: ignore[method-assign]

    def wait_for(self, future: "asyncio.Future[Any]") -> None:
        """A thread will answer it."""
        self._threads += 1

        def answered(_: object) -> None:
            self._threads -= 1

        future.add_done_callback(answered)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        future = super().run_in_executor(executor, func, *args)
        self.wait_for(future)
        return future
