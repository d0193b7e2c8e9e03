"""Waits through outages of a shared store, for a limited time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

from polite.errors import StoreFailed
from polite.options import number
from polite.ports import Clock
from polite.stores.redis.step import Unreached

PATIENCE_S = 60.0
# Seconds between two attempts, doubled each time.
_FIRST_S, _LAST_S = 0.05, 1.0

T = TypeVar("T")


class Patience:
    """Repeats calls that did not reach the server.

    Args:
        name: The server's address without credentials.
        limit_s: Seconds after which a call fails.
    """

    def __init__(self, name: str, clock: Clock, limit_s: float = PATIENCE_S) -> None:
        self._name = name
        self._clock = clock
        self._limit_s = number("patience", limit_s, most=86_400)
        self._away: tuple[float, float, str] | None = None  # since (lasting, wall), the last error

    async def wait_for(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return what `call` returns, once the server is reached.

        Raises:
            StoreFailed: It was not, for the limit; or the call's own.
        """
        try:
            # It bounds the wait behind other calls, too.
            async with asyncio.timeout(self._limit_s) as limit:
                return await self._repeated(call, limit)
        except TimeoutError as error:
            raise self._failed() from error

    async def _repeated(self, call: Callable[[], Awaitable[T]], limit: asyncio.Timeout) -> T:
        pause_s = _FIRST_S
        while True:
            try:
                result = await call()
            except Unreached as error:
                since, wall, _ = self._away or (self._clock.lasting(), self._clock.wall(), "")
                self._away = since, wall, str(error)
                if limit.expired():
                    # redis-py may answer a cancellation by an error of its own, and there is no second one.
                    raise TimeoutError from error
            else:
                self._away = None
                return result
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LAST_S)

    def _failed(self) -> StoreFailed:
        if self._away is None:
            return StoreFailed(
                f"{self._name}: a call waited {self._limit_s:g} s behind others: the server is too slow",
                may_pass=True,
            )
        since, wall, because = self._away
        at = datetime.fromtimestamp(wall, UTC).strftime("%H:%M:%S UTC")
        return StoreFailed(
            f"{self._name} has not responded since {at} ({self._clock.lasting() - since:.0f} s); "
            f"the last error: {because}",
            may_pass=True,
        )
