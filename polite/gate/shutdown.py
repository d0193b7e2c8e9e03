"""Whether a gate is closed, and what is called when it closes."""

import logging
from collections.abc import Callable
from inspect import ismethod
from itertools import count
from weakref import WeakMethod

from polite.log import fields

log: logging.Logger = logging.getLogger("polite")

Callback = Callable[[], object]


class Shutdown:
    """The end of a gate, as seen by its permits and frontiers.

    Attributes:
        begun: The gate is closed, or is closing.
    """

    __slots__ = ("_callbacks", "_numbers", "begun")

    def __init__(self) -> None:
        self.begun: bool = False
        self._numbers = count()
        self._callbacks: dict[int, Callable[[], Callback | None]] = {}

    def on_begin(self, callback: Callback) -> None:
        """Call `callback` once, when the gate closes; at once if it is closed. The object of a bound method is held weakly."""
        if self.begun:
            callback()
            return
        callbacks, number = self._callbacks, next(self._numbers)
        if ismethod(callback):
            callbacks[number] = WeakMethod(callback, lambda _: callbacks.pop(number, None))
        else:
            callbacks[number] = lambda: callback

    def begin(self) -> None:
        """Call the callbacks, in the order in which they were added. May be called twice."""
        self.begun = True
        while self._callbacks:
            callback = self._callbacks.pop(next(iter(self._callbacks)))()
            try:
                if callback is not None:
                    callback()
            except Exception as error:
                log.exception(
                    "a callback of Gate.on_close failed", extra=fields("on_close_failed", error=error)
                )
