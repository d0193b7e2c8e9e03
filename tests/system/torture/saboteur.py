"""Fails one await: drives the coroutines of all tasks, counts where they suspend within polite, and spoils one of those."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

import polite

ROOT = Path(polite.__file__).parent
NOT_OURS = (ROOT / "testing", ROOT / "cli")
# A coroutine of this name counts as well: what a crawler does inside a permit's block.
INSIDE = "inside"
# Where a file of polite waits: its path below the package, and the line.
Place = tuple[str, int]


class Failure(Enum):
    """What happens at the await. CANCEL_LATE: the task is cancelled when its answer is there, and before it has seen it."""

    CANCEL = auto()
    CANCEL_LATE = auto()
    TIMEOUT = auto()
    OS_ERROR = auto()


class Saboteur:
    """A task factory. Of the suspensions of its tasks the one with the number `at` (from 0) fails; `places` are those it saw."""

    def __init__(self, at: int | None = None, failure: Failure = Failure.CANCEL) -> None:
        self.at, self.failure, self.seen = at, failure, 0
        self.places: set[Place] = set()
        self.struck_at: list[Place] = []
        self.victim: asyncio.Task[Any] | None = None
        self.error: Exception | None = None
        self._resting = False

    def __call__(self, loop, coro, **options):
        return asyncio.Task(_Driven(coro, self), loop=loop, **options)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Nothing is counted or spoilt inside the block."""
        self._resting = True
        try:
            yield
        finally:
            self._resting = False

    def strikes(self, places: list[Place]) -> bool:
        if self._resting or not places:
            return False
        self.places.update(places)
        self.seen += 1
        if self.seen - 1 != self.at:
            return False
        self.struck_at, self.victim = places, asyncio.current_task()
        return True

    def spoil(self, waits_for: "asyncio.Future[Any] | None") -> bool:
        """Cancel the task that is about to wait; True when it is to be thrown `error` instead."""
        task = asyncio.current_task()
        assert task is not None
        match self.failure:
            case Failure.TIMEOUT:
                self.error = TimeoutError("sabotage")
            case Failure.OS_ERROR:
                self.error = OSError("sabotage")
            case Failure.CANCEL_LATE if waits_for is not None:
                waits_for.add_done_callback(lambda _: task.cancel())
            case _:
                task.cancel()
        return self.error is not None


class _Driven(Coroutine[Any, Any, Any]):
    """A coroutine whose suspensions the saboteur sees."""

    def __init__(self, coro: Coroutine[Any, Any, Any], saboteur: Saboteur) -> None:
        self._coro, self._saboteur = coro, saboteur

    def send(self, value: Any) -> Any:
        return self._go_on(self._coro.send, value)

    def throw(self, kind: Any, value: BaseException | None = None, trace: TracebackType | None = None) -> Any:
        return self._go_on(self._coro.throw, kind if value is None else value)

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Any:
        raise NotImplementedError

    def _go_on(self, step: Callable[[Any], Any], argument: Any) -> Any:
        waits_for = step(argument)
        if not self._saboteur.strikes(list(places(self._coro))) or not self._saboteur.spoil(waits_for):
            return waits_for
        if waits_for is not None:
            # As asyncio's Task does it: it has taken notice of the future.
            waits_for._asyncio_future_blocking = False
        return self._go_on(self._coro.throw, self._saboteur.error)


def places(coro: Any) -> Iterator[Place]:
    """The lines of polite (and of a permit's block) at which a suspended coroutine waits, the outermost first."""
    while coro is not None:
        frame: FrameType | None = next(
            (getattr(coro, name) for name in ("cr_frame", "ag_frame", "gi_frame") if hasattr(coro, name)),
            None,
        )
        if frame is None:
            # A compiled coroutine shows neither its line nor what it awaits.
            if (module := type(coro).__module__).startswith("polite."):
                yield module, 0
            return
        if file := _file(frame.f_code):
            yield file, frame.f_lineno
        inner = next(
            (getattr(coro, name) for name in ("cr_await", "ag_await", "gi_yieldfrom") if hasattr(coro, name)),
            None,
        )
        # `async with` on an asynccontextmanager: what is awaited there does not tell its generator, but the frame does.
        generator = getattr(frame.f_locals.get("self"), "gen", None)
        coro = generator if isinstance(generator, AsyncGenerator) and inner is not generator else inner


@lru_cache
def _file(code: CodeType) -> str | None:
    """The file's path below the package, where it counts."""
    path = Path(code.co_filename)
    if code.co_name == INSIDE:
        return INSIDE
    if path.is_relative_to(ROOT) and not any(path.is_relative_to(other) for other in NOT_OURS):
        return str(path.relative_to(ROOT))
    return None
