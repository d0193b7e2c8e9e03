"""Options: what a crawler's settings say about its gate."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_reactor_installed

from polite.compose.gate import open_gate
from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.pacing.policy import PacingPolicy
from polite.ports import Listener
from polite.robots.agent import UserAgent

log: logging.Logger = logging.getLogger(__name__)

# They may be the name of an object, since Scrapy copies the values of settings.
_OBJECTS = ("listener", "signer", "throttle")
_OPTIONS = tuple(inspect.signature(open_gate).parameters)[1:]
_SETTINGS = ("POLITE", "POLITE_DELAY")
_SAY_WHO = "say who you are, such as 'ExampleBot/1.0 (+https://example.com/bot)'"
_FROM_SCRAPY = 0  # the priority of Scrapy's own settings


@dataclass(frozen=True)
class Options:
    """What a crawler's settings say about its gate.

    Attributes:
        agent: Of USER_AGENT, with the name of ROBOTSTXT_USER_AGENT if there is one.
        of_gate: The setting POLITE: the options of `open_gate`.
        min_delay: The setting POLITE_DELAY, or DOWNLOAD_DELAY; None if neither is set.
        max_robots_tries: How often robots.txt is tried, as often as a page.
    """

    agent: UserAgent
    of_gate: Mapping[str, Any]
    min_delay: float | None
    max_robots_tries: int

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Read them. Raises InvalidUserAgent and InvalidOption."""
        settings = crawler.settings
        of_gate = {
            name: load_object(value) if name in _OBJECTS and isinstance(value, str) else value
            for name, value in gate_options(settings).items()
        }
        delay = settings.getfloat("POLITE_DELAY") or settings.getfloat("DOWNLOAD_DELAY")
        if delay < 0:
            raise InvalidOption(f"POLITE_DELAY must be >= 0, got {delay!r}")
        for name in settings:
            if name.startswith("POLITE") and name not in _SETTINGS:
                known = " and ".join(_SETTINGS)
                log.warning("%s is no setting of polite's, so it has no effect; there are %s", name, known)
        own = getattr(crawler.spider, "user_agent", None)
        header = own or settings["USER_AGENT"]
        if settings.getpriority("USER_AGENT") == _FROM_SCRAPY and not own:
            log.warning("USER_AGENT is not set, so robots.txt is obeyed for %r; %s", header, _SAY_WHO)
        if not header:
            raise InvalidOption(f"USER_AGENT is empty; {_SAY_WHO}")
        name = settings["ROBOTSTXT_USER_AGENT"]
        agent = UserAgent(header, UserAgent(name).named if name else ())
        tries = 1 + max(0, settings.getint("RETRY_TIMES"))
        return cls(agent, of_gate, delay or None, tries)


def gate_options(settings: Any) -> dict[str, Any]:
    """Return the setting POLITE. Raises InvalidOption if it is no dict, or names an option that `open_gate` does not have."""
    given = settings["POLITE"]
    try:
        options: dict[str, Any] = settings.getdict("POLITE")
    except (TypeError, ValueError) as error:
        raise InvalidOption(
            f"POLITE must be a dict of options of polite.open_gate, such as {{'store': 'robots.sqlite'}}, got {given!r}"
        ) from error
    for name in options:
        if name == "agent":
            raise InvalidOption("POLITE has no 'agent': the User-Agent is the setting USER_AGENT")
        if name not in _OPTIONS:
            near = get_close_matches(name, _OPTIONS, n=1)
            perhaps = f"{near[0]!r} is one" if near else f"there are {', '.join(_OPTIONS)}"
            raise InvalidOption(f"POLITE: polite.open_gate has no option {name!r}; {perhaps}")
    return options


def warn_of_waiting_places(settings: Any) -> None:
    """Say what it costs that no priority queue of polite's is used, and what the add-on would have changed."""
    log.warning(
        "PoliteMiddleware works without PoliteQueue: a request that waits for its turn holds one of CONCURRENT_REQUESTS "
        "places. With ADDONS = {'polite.integrations.scrapy.Addon': 300} and Scrapy's own scheduler, it holds none"
    )
    if settings.getbool("ROBOTSTXT_OBEY"):
        log.warning("ROBOTSTXT_OBEY=True fetches robots.txt a second time: set it to False, polite obeys it")
    if settings.getfloat("DOWNLOAD_DELAY"):
        log.warning("DOWNLOAD_DELAY comes on top of polite's delay: set it to 0, and POLITE_DELAY instead")
    if settings.getbool("AUTOTHROTTLE_ENABLED"):
        log.warning("AUTOTHROTTLE_ENABLED=True adds delays of its own: set it to False")


@dataclass(eq=False)
class _SharedGate:
    """An open gate.

    Attributes:
        gate: The gate.
        options: What it was opened with, and for.
        opening: The context that opened it. Closing the event loop closes it, if the reactor's end does not.
        crawlers: So many have it now.
    """

    gate: Gate
    options: Options
    opening: AbstractAsyncContextManager[Gate]
    crawlers: int = 0


@dataclass
class _OfLoop:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    gates: list[_SharedGate] = field(default_factory=list)


_loops: dict[asyncio.AbstractEventLoop, _OfLoop] = {}


async def shared_gate(options: Options, listener: Listener) -> tuple[Gate, Callable[[], object]]:
    """Return the gate of this event loop, the User-Agent and the options of `open_gate`, and what ends its use by the crawler.

    It is opened if there is none. Crawlers that run at the same time or one after the other keep their delays together. Of their
    delays the longest counts.

    Args:
        options: The crawler's.
        listener: Hears the gate's events until then.

    Raises:
        InvalidOption, StoreFailed: As `open_gate`.
    """
    for closed in [loop for loop in _loops if loop.is_closed()]:
        del _loops[closed]
    of_loop = _loops.setdefault(asyncio.get_running_loop(), _OfLoop())
    async with of_loop.lock:
        for shared in of_loop.gates:
            if (shared.options.agent, shared.options.of_gate) == (options.agent, options.of_gate):
                break
        else:
            opening = open_gate(options.agent, **options.of_gate)
            shared = _SharedGate(await opening.__aenter__(), options, opening)
            _close_with_reactor(shared.gate)
            of_loop.gates.append(shared)
            shared.gate.on_close(partial(of_loop.gates.remove, shared))
            if len(of_loop.gates) > 1:
                log.warning(
                    "Spiders of this process have %d gates, since their USER_AGENT or POLITE differs: each fetches "
                    "robots.txt, and at hosts that they have in common each waits for the others. Give them the same settings",
                    len(of_loop.gates),
                )
    gate = shared.gate
    if "pacing" not in options.of_gate:
        wanted = PacingPolicy().min_delay if options.min_delay is None else options.min_delay
        if not shared.crawlers or wanted > gate.pacing.min_delay:
            gate.pacing = replace(gate.pacing, min_delay=wanted)
    shared.crawlers += 1
    end = gate.listen(listener)

    def leave() -> None:
        shared.crawlers -= 1
        end()

    return gate, leave


def _close_with_reactor(gate: Gate) -> None:
    """Have the end of the reactor wait for it. Without a reactor, `shutdown_asyncgens` at the loop's end closes it."""
    if is_reactor_installed():
        # To import it installs one.
        from twisted.internet import reactor  # noqa: PLC0415

        running: Any = reactor
        running.addSystemEventTrigger("before", "shutdown", lambda: deferred_from_coro(gate.close()))
