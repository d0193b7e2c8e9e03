"""VirtualClient: a client of redis.asyncio whose commands travel to a VirtualServer in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.client import NEVER_DECODE

from tests.simulation.machines.virtual_server import VirtualServer

# Takes a command's execution to the server at some time, and its reply or error back. The text is a script's first key, or empty.
Wire = Callable[[Callable[[], Any], str], Awaitable[Any]]


class VirtualClient(Redis):
    """A client for `open_gate(store=...)`, `open_frontier(store=...)` or `RedisLink.of`. It opens no connection.

    Args:
        wire: How commands travel; by default they take 1 ms to the server, and 1 ms back.
    """

    def __init__(self, server: VirtualServer, wire: Wire | None = None) -> None:
        # Otherwise it looks its own version up, which takes longer than a short world.
        super().__init__(host="simulated", driver_info=None)
        self._server = server
        self._wire = wire or steady_wire

    def set_retry(self, retry: Retry) -> None:
        """Do nothing: commands are sent once."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command on the server, and return its reply as redis-py does."""
        key = args[3] if args[0] in {"EVALSHA", "EVAL"} else ""
        reply = await self._wire(lambda: self._server.execute(*args), key)
        if NEVER_DECODE in options:
            return reply
        read = self.response_callbacks.get(args[0])
        return reply if read is None else read(reply, **options)


async def steady_wire(execute: Callable[[], Any], key: str) -> Any:
    """Take 1 ms for each way, and lose nothing."""
    del key
    await asyncio.sleep(0.001)
    reply = execute()
    await asyncio.sleep(0.001)
    return reply
