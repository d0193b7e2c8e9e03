"""Passes events to the gate's listener: only those that it wants. What the listener raises is logged."""

import asyncio
import logging
from collections.abc import Collection
from typing import get_args

from polite.errors import InvalidOption
from polite.events import Event
from polite.ports import Listener

log = logging.getLogger("polite")

_EVERY = frozenset(get_args(Event))


class Notifier:
    """A Listener around the user's. If that names its events (see ports.Listener), it receives these only.

    Raises:
        InvalidOption: The listener's `events` are not classes of polite.events.
    """

    __slots__ = ("_listener", "_wanted")

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._wanted = _wanted(listener)

    def wants(self, kind: type[Event]) -> bool:
        """Return whether the listener receives events of this class. If not, they need not be built."""
        return kind in self._wanted

    def __call__(self, event: Event, /) -> None:
        """Pass an event on, if it is wanted."""
        if type(event) not in self._wanted:
            return
        try:
            self._listener(event)
        except (Exception, asyncio.CancelledError):
            # A plain function cannot be cancelled: a CancelledError is its own, and would end the request.
            log.exception("the listener failed on %s", event)


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
