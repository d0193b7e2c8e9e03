"""Requests that were sent without a permit: the scopes of their URLs are delayed, as after a permit."""

import asyncio
import logging
from collections.abc import Callable, Hashable

from polite.errors import GateClosed, PoliteError
from polite.gate.background import start_later
from polite.gate.turns import Turns
from polite.log import fields
from polite.origin import Origin, Target
from polite.pace import RequestedPace

log: logging.Logger = logging.getLogger("polite")


class Charges:
    """Delays scopes at once. A scope that cannot be named yet, or is paced by another process, is delayed once that has changed.

    Args:
        pace_of: Returns the pace that an origin's last known file requested.
    """

    def __init__(self, turns: Turns, pace_of: Callable[[Origin], RequestedPace | None]) -> None:
        self._turns = turns
        self._pace_of = pace_of
        # By scopes: while one is on its way, another would add nothing.
        self._coming: dict[tuple[Hashable, ...], asyncio.Task[None]] = {}

    def add(self, target: Target) -> None:
        """Charge a request that was just sent."""
        self._delay(target)
        if self._turns.owns(target):
            return
        scopes = tuple(self._turns.scopes_of(target))
        if scopes not in self._coming:
            task = self._coming[scopes] = start_later(
                lambda: self._delay_later(target), name=f"polite charge {target.origin}"
            )
            task.add_done_callback(lambda _: self._coming.pop(scopes, None))

    async def close(self) -> None:
        """End what is on its way. May be called twice."""
        tasks = list(self._coming.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _delay(self, target: Target) -> None:
        self._turns.delayed(target, self._pace_of(target.origin))

    async def _delay_later(self, target: Target) -> None:
        try:
            await self._turns.own(target)
        except GateClosed:
            return
        except PoliteError as error:
            extra = fields("charge_not_shared", origin=target.origin, error=error)
            log.warning(
                "a request that was sent to %s delays only this process: %s",
                target.origin,
                error,
                extra=extra,
            )
            return
        self._delay(target)
