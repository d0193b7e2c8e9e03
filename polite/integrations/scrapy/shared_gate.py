"""The gates of an event loop: crawlers with one User-Agent and the same options share one, which closes with the loop."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed

from polite.compose.gate import open_gate
from polite.events import BackedOff, CircuitOpened, Event, RobotsFetched
from polite.gate.gate import Gate
from polite.pacing.policy import PacingPolicy
from polite.ports import Listener
from polite.robots.agent import UserAgent

log: logging.Logger = logging.getLogger(__name__)

_COUNTED = frozenset({RobotsFetched, BackedOff, CircuitOpened})


class Audience:
    """A listener that passes events on to the crawlers of a gate, and to the listener of its options.

    Attributes:
        events: What is received; all, if the listener does not say what it wants.
        crawlers: What is called with the events that crawlers count.
    """

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self.crawlers: list[Callable[[Event], None]] = []
        wanted = _COUNTED if listener is None else getattr(listener, "events", None)
        self.events: frozenset[type[Event]] | None = None if wanted is None else _COUNTED.union(wanted)
        self._wanted = wanted

    def __call__(self, event: Event, /) -> None:
        if type(event) in _COUNTED:
            for crawler in self.crawlers:
                crawler(event)
        if self._listener is not None and (self._wanted is None or type(event) in self._wanted):
            self._listener(event)


@dataclass(eq=False)
class SharedGate:
    """An open gate.

    Attributes:
        gate: The gate.
        audience: Who learns of its events.
        agent, options: What it was opened with.
        opening: The context that opened it. Closing the event loop closes it, if the reactor's end does not.
    """

    gate: Gate
    audience: Audience
    agent: UserAgent
    options: Mapping[str, Any]
    opening: AbstractAsyncContextManager[Gate]


@dataclass
class _OfLoop:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    gates: list[SharedGate] = field(default_factory=list)


_loops: dict[asyncio.AbstractEventLoop, _OfLoop] = {}


async def shared_gate(agent: UserAgent, options: Mapping[str, Any], min_delay: float | None) -> SharedGate:
    """Return the gate of this event loop, the User-Agent and the options; open it if there is none.

    Crawlers that run at the same time or one after the other keep their delays together. Of their delays the longest counts.

    Args:
        min_delay: The shortest delay of an origin in seconds, if `options` has no `pacing`; None for polite's default.

    Raises:
        InvalidOption, StoreFailed: As `open_gate`.
    """
    for closed in [loop for loop in _loops if loop.is_closed()]:
        del _loops[closed]
    of_loop = _loops.setdefault(asyncio.get_running_loop(), _OfLoop())
    async with of_loop.lock:
        for shared in of_loop.gates:
            if shared.agent == agent and shared.options == options:
                break
        else:
            shared = await _opened(agent, options)
            of_loop.gates.append(shared)
            shared.gate.on_close(partial(of_loop.gates.remove, shared))
            if len(of_loop.gates) > 1:
                log.warning(
                    "Spiders of this process have %d gates, since their USER_AGENT or POLITE differs: hosts that they have in "
                    "common are requested once per delay by each. Give them the same settings, or one store on a server",
                    len(of_loop.gates),
                )
    if "pacing" not in options:
        _slow_down(shared.gate, min_delay, alone=not shared.audience.crawlers)
    return shared


def _slow_down(gate: Gate, min_delay: float | None, *, alone: bool) -> None:
    wanted = PacingPolicy().min_delay if min_delay is None else min_delay
    if alone or wanted > gate.pacing.min_delay:
        gate.pacing = replace(gate.pacing, min_delay=wanted)


async def _opened(agent: UserAgent, options: Mapping[str, Any]) -> SharedGate:
    audience = Audience(options.get("listener"))
    opening = open_gate(agent, **{**options, "listener": audience})
    gate = await opening.__aenter__()
    if is_reactor_installed():
        # To import it installs one.
        from twisted.internet import reactor  # noqa: PLC0415

        # The end of the reactor waits for it. Without a reactor, `shutdown_asyncgens` at the loop's end closes `opening`.
        running: Any = reactor
        running.addSystemEventTrigger("before", "shutdown", lambda: deferred_from_coro(gate.close()))
    return SharedGate(gate, audience, agent, options, opening)
