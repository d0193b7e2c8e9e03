"""Puts a gate together; the only file that chooses implementations."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

from polite.clock import SystemClock
from polite.errors import InvalidOption
from polite.events import Event
from polite.fetch import RobotsFetcher
from polite.gate import Gate
from polite.origins import OriginManager
from polite.pacers.local import LocalPacer
from polite.pacing.policy import PacingPolicy
from polite.pacing.throttle import DelayThrottle
from polite.ports import Clock, Listener, RobotsStore, Throttle, Transport
from polite.robots.agent import UserAgent
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.turns import Turns

log = logging.getLogger("polite")

T = TypeVar("T", RobotsPolicy, PacingPolicy, FetchPolicy)


def _told(listener: Listener | None) -> Listener:
    """The listener as the gate calls it: what it raises is logged, never anybody's crawl."""

    def tell(event: Event, /) -> None:
        if listener is None:
            return
        try:
            listener(event)
        except Exception:
            log.exception("the listener failed on %s", event)

    return tell


def _checked(option: str, value: T | None, kind: type[T]) -> T:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise InvalidOption(f"{option}={value!r}: a {kind.__name__} is needed")
    return value


@asynccontextmanager
async def open_gate(
    agent: str | UserAgent,
    *,
    robots: RobotsPolicy | None = None,
    pacing: PacingPolicy | None = None,
    fetching: FetchPolicy | None = None,
    store: RobotsStore | None = None,
    throttle: Throttle | None = None,
    listener: Listener | None = None,
    clock: Clock | None = None,
    transports: Mapping[str, Transport] | None = None,
) -> AsyncIterator[Gate]:
    """A gate for one crawler, closed when the block is left: `async with polite.open_gate("ExampleBot/1.0 (+url)") as gate:`.

    `agent` is the User-Agent header that is sent, and names the product token that files are searched for. `transports`, by
    scheme, are spoken beside http and https, or instead of them (L9); the gate closes them, and the store. `listener` is told
    of each event. Raises InvalidUserAgent, InvalidOption.
    """
    agent = agent if isinstance(agent, UserAgent) else UserAgent(agent)
    robots = _checked("robots", robots, RobotsPolicy)
    pacing = _checked("pacing", pacing, PacingPolicy)
    fetching = _checked("fetching", fetching, FetchPolicy)
    if isinstance(store, str):
        raise InvalidOption(
            f"store={store!r}: a RobotsStore is needed, such as polite.stores.memory.MemoryStore()"
        )
    clock = clock or SystemClock()
    spoken = _transports(agent, fetching, transports or {})
    tell = _told(listener)
    pacer = LocalPacer(
        clock,
        concurrency=pacing.concurrency,
        provisional_s=pacing.min_delay,
        max_waiting=pacing.max_waiting,
    )
    turns = Turns(pacer, throttle or _throttle(pacing), pacing, tell)
    fetcher = RobotsFetcher(spoken, turns, clock, fetching, robots)
    origins = OriginManager(agent, fetcher, turns, clock, robots, tell, store=store)
    gate = Gate(origins, turns, clock, tell if listener else None)
    try:
        yield gate
    finally:
        await gate.close()
        for transport in {id(t): t for t in spoken.values()}.values():
            await transport.close()


def _transports(
    agent: UserAgent, fetching: FetchPolicy, given: Mapping[str, Transport]
) -> dict[str, Transport]:
    # Imported here, so that `import polite` costs a crawler that only reads rules no HTTP client.
    from polite.transports.http import HttpTransport

    http = HttpTransport(agent.header, fetching)
    return {"http": http, "https": http, **given}


def _throttle(pacing: PacingPolicy) -> DelayThrottle:
    return DelayThrottle(
        min_delay=pacing.min_delay,
        max_crawl_delay=pacing.max_crawl_delay,
        jitter=pacing.jitter,
        max_retry_after=pacing.max_retry_after,
        backoff=pacing.backoff,
        max_backoff=pacing.max_backoff,
    )
