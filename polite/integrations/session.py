"""open_session: an aiohttp session whose requests are polite, on one connection pool with robots.txt; gate_of: its gate."""

import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from polite.blocking.gate import with_parameters_of
from polite.compose.checked import checked_transports
from polite.compose.gate import checked, open_gate, opening
from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.ports import Transport
from polite.robots.agent import UserAgent
from polite.robots.policy import FetchPolicy

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver

# Given to open_gate, these would have no effect: the session's own requests are not conditional.
_REFUSED = ("recrawl", "validators")
_YOUR_OWN = "for a session of your own, use polite.open_gate and polite.integrations.aiohttp.middleware"
_gates: "WeakKeyDictionary[aiohttp.ClientSession, Gate]" = WeakKeyDictionary()


@with_parameters_of(open_gate)
def open_session(
    agent: str | UserAgent, **options: Any
) -> "AbstractAsyncContextManager[aiohttp.ClientSession]":
    """Open an `aiohttp.ClientSession` whose every request, redirect hop and retry is checked and waits for its turn.

    Example:
        async with polite.open_session("ExampleBot/1.0 (+https://example.com/bot)") as session:
            async with session.get("https://example.com/about") as response:
                text = await response.text()

    robots.txt and the first page of an origin use one connection, and so one TLS handshake. Requests go to the addresses,
    nameservers, authorities and proxy that `fetching` permits or names. No time-out counts the wait for a turn:
    `FetchPolicy.timeout` limits each connection and each read of a page. `polite.integrations.aiohttp.middleware` says what
    a request raises besides; a session of your own with it, and with `guarded_connector`, does the rest that this one does not.

    Args:
        agent: The User-Agent header. Its product token selects the groups of robots.txt.
        options: The options of `open_gate`, but `recrawl` and `validators`.

    Raises:
        InvalidUserAgent, InvalidOption, StoreFailed: As `open_gate`.
        TypeError: `open_gate` has no such option.
    """
    if unknown := options.keys() - inspect.signature(open_gate).parameters.keys():
        raise TypeError(
            f"open_session: {', '.join(sorted(unknown))}: no such option; it has those of open_gate; {_YOUR_OWN}"
        )
    for option in _REFUSED:
        if options.get(option) is not None:
            raise InvalidOption(
                f"open_session({option}=...) has no effect, since its requests are not conditional; {_YOUR_OWN}, "
                "and send the headers of gate.conditional"
            )
    return _open_session(agent, **options)


def gate_of(session: "aiohttp.ClientSession") -> Gate:
    """Return the gate of a session that `open_session` opened, such as for its counters, `check` and `sitemaps`.

    Example:
        async with polite.open_session("ExampleBot/1.0 (+https://example.com/bot)") as session:
            async for entry in polite.gate_of(session).sitemaps("https://example.com"):
                ...

    Raises:
        InvalidOption: It is another session. Its gate is the one that you gave to its middleware.
    """
    try:
        return _gates[session]
    except (KeyError, TypeError):  # a TypeError: it is no session at all
        raise InvalidOption(f"gate_of needs a session of polite.open_session, got {session!r}") from None


@opening
async def _open_session(
    agent: str | UserAgent,
    *,
    fetching: FetchPolicy | None = None,
    resolver: "Mapping[str, str] | AbstractResolver | None" = None,
    transports: Mapping[str, Transport] | None = None,
    **options: Any,
) -> "AsyncIterator[aiohttp.ClientSession]":
    # Imported here, so that `import polite` loads no HTTP client.
    import aiohttp

    from polite.integrations.aiohttp import PacedRequest, middleware
    from polite.transports.connection_pool import ConnectionPool
    from polite.transports.http import HttpTransport, trusting

    agent = agent if isinstance(agent, UserAgent) else UserAgent(agent)
    fetching = checked("fetching", fetching, FetchPolicy)
    async with AsyncExitStack() as closing:
        pool = ConnectionPool(
            fetching, resolver=resolver, ssl=trusting(fetching.ca_file), use_dns_cache=False
        )
        closing.push_async_callback(pool.close)
        http = HttpTransport(agent.header, fetching, resolver, pool)
        if transports is None or isinstance(transports, Mapping):
            transports = {"http": http, "https": http, **checked_transports(transports or {})}
        gate = await closing.enter_async_context(
            open_gate(agent, fetching=fetching, resolver=resolver, transports=transports, **options)
        )
        limits = aiohttp.ClientTimeout(total=None, sock_connect=fetching.timeout, sock_read=fetching.timeout)
        session = aiohttp.ClientSession(
            connector=pool,
            connector_owner=False,
            headers={"User-Agent": agent.header},
            middlewares=[middleware(gate)],
            proxy=fetching.proxy,
            request_class=PacedRequest,
            timeout=limits,
        )
        _gates[session] = gate
        yield await closing.enter_async_context(session)
