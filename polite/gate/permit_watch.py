"""Tells meters and listeners of each permit that is granted and left. What none of them wants is not worked out."""

import asyncio
import logging
from collections.abc import Callable

from polite.events import Granted, Left
from polite.gate.notifier import Notifier
from polite.log import fields
from polite.origin import Target
from polite.ports import Meter
from polite.task import Task

log: logging.Logger = logging.getLogger("polite")

OnGranted = Callable[[Target, float, Task | None], None]
OnLeft = Callable[[Target, int | None, float | None, float], None]


class PermitWatch:
    """The meters of a gate, and its listeners as far as they want Granted and Left."""

    __slots__ = ("_added", "_listener", "_meters")

    def __init__(self, listener: Notifier) -> None:
        self._listener = listener
        self._added: dict[object, Meter] = {}
        self._meters: tuple[Meter, ...] = ()

    def add(self, meter: Meter) -> Callable[[], None]:
        """Call one more meter, until the returned function is called."""
        key = object()
        self._added[key] = meter
        self._meters = tuple(self._added.values())

        def remove() -> None:
            self._added.pop(key, None)
            self._meters = tuple(self._added.values())

        return remove

    @property
    def on_granted(self) -> OnGranted | None:
        """What is to be called with each grant, until meters or listeners change; None if nothing wants to know."""
        if len(self._meters) != 1 or self._listener.wants(Granted):
            return self._granted if self._meters or self._listener.wants(Granted) else None
        (meter,) = self._meters

        # Hot path: inlines _granted for one meter and no listener.
        def granted(_: Target, waited_s: float, task: Task | None) -> None:
            try:
                meter.granted(waited_s, task)
            except (Exception, asyncio.CancelledError) as error:
                # A plain function cannot be cancelled: a CancelledError is its own, and would end the request.
                log.exception("the meter %r failed", meter, extra=fields("meter_failed", error=error))

        return granted

    @property
    def on_left(self) -> OnLeft | None:
        """What is to be called at each end of a permit, until meters or listeners change; None if nothing wants to know."""
        if len(self._meters) != 1 or self._listener.wants(Left):
            return self._left if self._meters or self._listener.wants(Left) else None
        (meter,) = self._meters

        # Hot path: inlines _left for one meter and no listener.
        def left(_: Target, status: int | None, elapsed_s: float | None, held_s: float) -> None:
            try:
                meter.left(status, held_s)
            except (Exception, asyncio.CancelledError) as error:
                log.exception("the meter %r failed", meter, extra=fields("meter_failed", error=error))

        return left

    def _granted(self, target: Target, waited_s: float, task: Task | None) -> None:
        for meter in self._meters:
            try:
                meter.granted(waited_s, task)
            except (Exception, asyncio.CancelledError) as error:
                log.exception("the meter %r failed", meter, extra=fields("meter_failed", error=error))
        if self._listener.wants(Granted):
            self._listener(Granted(target.url, waited_s, target.origin.text, task))

    def _left(self, target: Target, status: int | None, elapsed_s: float | None, held_s: float) -> None:
        for meter in self._meters:
            try:
                meter.left(status, held_s)
            except (Exception, asyncio.CancelledError) as error:
                log.exception("the meter %r failed", meter, extra=fields("meter_failed", error=error))
        if self._listener.wants(Left):
            self._listener(Left(target.url, status, elapsed_s, held_s))
