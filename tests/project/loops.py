"""The event loops on which the tests run beside the standard one: loops whose tasks are eager, and uvloop."""

import asyncio
import sys
from collections.abc import Callable
from inspect import signature
from typing import Any


def make_every_loop_eager() -> None:
    """Give each loop that is made from now on eager tasks, those in virtual time too."""
    if sys.version_info < (3, 12):
        raise RuntimeError("eager tasks need Python 3.12 or later")
    init, factory = asyncio.BaseEventLoop.__init__, eager_factory()

    def eager(loop: asyncio.BaseEventLoop) -> None:
        init(loop)
        loop.set_task_factory(factory)

    asyncio.BaseEventLoop.__init__ = eager  # type: ignore[method-assign]


def eager_factory() -> Any:
    """A factory as `asyncio.eager_task_factory`, but for the tasks of aioftp.

    anyio, below httpx, looks for the code of that factory, and starts its own tasks later. It would not know a function that
    calls the factory, and its task groups would fail.
    """
    return asyncio.create_eager_task_factory(_eager_but_for_the_other_side)


def _eager_but_for_the_other_side(coro, *, eager_start=False, **options):
    """aioftp's server replies in the wrong order (226 before 150) when its tasks are eager."""
    return asyncio.Task(coro, eager_start=eager_start and not _is_of_the_ftp_server(coro), **options)


def _is_of_the_ftp_server(coro: Any) -> bool:
    frame = getattr(coro, "cr_frame", None)
    return frame is not None and frame.f_globals["__name__"].startswith("aioftp")


def eager_on_uvloop() -> bool:
    """Whether `asyncio.eager_task_factory` takes what uvloop passes: `eager_start` too, from Python 3.13 on."""
    return sys.version_info < (3, 13) or "eager_start" in signature(asyncio.eager_task_factory).parameters


def make_uvloop_the_default(require_loopback: Callable[[Any], None]) -> None:
    """Let `asyncio.run` and `asyncio.new_event_loop` make uvloop's loops.

    uvloop opens connections without Python's `socket`, so these loops ask `require_loopback` themselves.
    """
    import uvloop

    class LoopbackLoop(uvloop.Loop):
        async def create_connection(self, factory, host=None, port=None, **options):
            if host is not None:
                require_loopback((host,))
            return await super().create_connection(factory, host, port, **options)

        async def create_datagram_endpoint(self, factory, local_addr=None, remote_addr=None, **options):
            require_loopback(local_addr)
            require_loopback(remote_addr)
            return await super().create_datagram_endpoint(factory, local_addr, remote_addr, **options)

        async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
            require_loopback((host,))
            return await super().getaddrinfo(host, port, **options)

    asyncio.new_event_loop = asyncio.events.new_event_loop = LoopbackLoop
