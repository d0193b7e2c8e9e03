"""Passes events to a gate's listeners: to each only those that it wants. What a listener raises is logged."""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import get_args

from polite.errors import InvalidOption
from polite.events import Event
from polite.gate.event_log import LOGGED, log_event
from polite.log import fields
from polite.ports import Listener

log: logging.Logger = logging.getLogger("polite")

_EVERY = frozenset(get_args(Event))


class Notifier:
    """A Listener that passes events on. A listener that names its events (see ports.Listener) receives these only."""

    __slots__ = ("_listeners", "_wanting")

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[Listener, frozenset[type]]] = {}
        self._wanting: dict[type, tuple[Listener, ...]] = {}

    def add(self, listener: Listener) -> Callable[[], None]:
        """Pass events to this listener too, after the others, until the returned function is called.

        Raises:
            InvalidOption: The listener's `events` are not classes of polite.events.
        """
        key = object()
        self._listeners[key] = listener, _wanted(listener)
        self._sort()

        def remove() -> None:
            if self._listeners.pop(key, None) is not None:
                self._sort()

        return remove

    def wants(self, kind: type[Event]) -> bool:
        """Return whether any listener receives events of this class. If not, they need not be built."""
        return kind in self._wanting

    def __call__(self, event: Event, /) -> None:
        """Pass an event on, if it is wanted."""
        level = LOGGED.get(type(event))
        if level is not None and log.isEnabledFor(level):
            log_event(event)
        for listener in self._wanting.get(type(event), ()):
            try:
                listener(event)
            except (Exception, asyncio.CancelledError) as error:
                # A plain function cannot be cancelled: a CancelledError is its own, and would end the request.
                log.exception(
                    "the listener failed on %s", event, extra=fields("listener_failed", error=error)
                )

    def _sort(self) -> None:
        # Made anew each time: an event that is just passed on goes to those that listened when it came.
        wanting: dict[type, tuple[Listener, ...]] = {}
        for listener, wanted in self._listeners.values():
            for kind in wanted:
                wanting[kind] = (*wanting.get(kind, ()), listener)
        self._wanting = wanting


def _wanted(listener: Listener) -> frozenset[type]:
    events = getattr(listener, "events", None)
    if events is None:
        return _EVERY
    # Perhaps it is a list in which the listener keeps what it received: to send nothing then would surprise.
    if not isinstance(events, Collection) or not events or not _EVERY.issuperset(events):
        raise InvalidOption(
            f"listener.events must name the classes of polite.events that the listener wants, got {events!r}"
        )
    return frozenset(events)
