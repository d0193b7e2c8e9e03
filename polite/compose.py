"""Builds gates and frontiers: the only file that chooses implementations."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack

from polite.clock import SystemClock
from polite.errors import InvalidOption
from polite.events import Event
from polite.frontier.frontier import Frontier, FrontierOptions
from polite.frontier.parts import Parts
from polite.frontier.task_store import Limits
from polite.gate.address_book import AddressBook
from polite.gate.gate import Gate
from polite.gate.origin_manager import OriginManager
from polite.gate.robots_fetcher import RobotsFetcher
from polite.gate.services import Services
from polite.gate.turns import Turns
from polite.origin import Origin
from polite.pacers.local import LocalPacer
from polite.pacers.shared import SharedPacer
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.homes import HomeNames
from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import ScopePolicy, ScopeResolver, Scopes
from polite.pacing.throttle import Throttle
from polite.ports import (
    AddressSource,
    BackOffStore,
    Clock,
    Homes,
    Listener,
    RobotsStore,
    SavedBackOff,
    Scheduler,
    Transport,
)
from polite.robots.agent import UserAgent
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.schedulers import ORDERS, FileOrder

if TYPE_CHECKING:
    from redis.asyncio import Redis, RedisCluster

    from polite.stores.redis.opening import SharedStore
    from polite.stores.redis.session import Session

log = logging.getLogger("polite")

T = TypeVar("T", RobotsPolicy, PacingPolicy, FetchPolicy)


def _told(listener: Listener | None) -> Listener:
    """Wrap a listener: an exception is logged and does not end the request."""

    def tell(event: Event, /) -> None:
        if listener is None:
            return
        try:
            listener(event)
        except (Exception, asyncio.CancelledError):
            # A plain function cannot be cancelled: a CancelledError is its own, and would end the request.
            log.exception("the listener failed on %s", event)

    return tell


def _checked(option: str, value: T | None, kind: type[T]) -> T:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise InvalidOption(f"{option} must be a {kind.__name__}, got {value!r}")
    return value


@asynccontextmanager
async def open_gate(
    agent: str | UserAgent,
    *,
    robots: RobotsPolicy | None = None,
    pacing: PacingPolicy | None = None,
    fetching: FetchPolicy | None = None,
    store: "RobotsStore | Redis | RedisCluster | str | os.PathLike[str] | None" = None,
    crawl: str | None = None,
    throttle: Throttle | None = None,
    listener: Listener | None = None,
    clock: Clock | None = None,
    transports: Mapping[str, Transport] | None = None,
    addresses: AddressSource | None = None,
) -> AsyncIterator[Gate]:
    """Open a gate for one crawler, and close it when the block exits.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)", store="robots.sqlite") as gate:
            async with gate.permit("https://example.com/about") as permit:
                ...  # fetch permit.url, and report the response

    Args:
        agent: The User-Agent header. Its product token selects the groups of robots.txt.
        robots: How robots.txt is read, cached and retried.
        pacing: Delays, scopes, back-off and limits.
        fetching: How robots.txt is fetched.
        store: Keeps robots.txt results: a RobotsStore, or the name of a file for a SqliteStore, which keeps them between runs.
            By default they are forgotten with the gate. The gate closes it; other gates that share it go on. Or the shared store
            of many processes, which keep all delays together: a URL such as `redis://example.com/0`, or a client of redis.asyncio
            for polite alone.
        crawl: The name of the crawl on a shared store: processes of one name share their delays. "default" by default.
        throttle: Decides delays instead of the throttle that `pacing` describes.
        listener: Receives each event.
        clock: Replaces the system's clocks, for tests.
        transports: Transports by scheme, besides http, https and ftp or instead of them (L9 in docs/spec.md). The gate closes them.
        addresses: Looks up addresses for `Scopes(address=...)`, instead of the nameservers of `fetching`. The gate closes it.

    Raises:
        InvalidUserAgent: The agent cannot be sent, or has no product token.
        InvalidOption: An option has the wrong type or value.
        StoreFailed: The store's file cannot be used, or the shared store's server is not reached or refuses.
    """
    agent = agent if isinstance(agent, UserAgent) else UserAgent(agent)
    robots = _checked("robots", robots, RobotsPolicy)
    pacing = _checked("pacing", pacing, PacingPolicy)
    fetching = _checked("fetching", fetching, FetchPolicy)
    _refuse_odd(throttle, clock, listener, transports, addresses)
    clock = clock or SystemClock()
    spoken = _transports(agent, fetching, transports or {})
    tell = _told(listener)
    book = _address_book(pacing, fetching, clock, addresses)
    policies = EffectivePolicies(pacing, throttle, scopes=_scopes(pacing, book))
    concurrency, delay = policies.limits
    pacer = LocalPacer(clock, concurrency=concurrency, provisional_s=delay, max_waiting=pacing.max_waiting)
    shared = await _opened(store, clock, crawl)
    kept = shared.robots if shared is not None else await _kept(store, clock)
    turns = Turns(
        pacer,
        policies,
        clock,
        tell,
        keep_back_off=_keep_back_off(kept, clock),
        find=None if book is None else book.find,
    )
    fetcher = RobotsFetcher(spoken, turns, clock, fetching, robots)
    origins = OriginManager(agent, fetcher, turns, clock, robots, tell, store=kept)
    gate = Gate(Services(clock, origins, turns, tell if listener else None))
    # Each is closed even if closing another fails or is cancelled.
    async with AsyncExitStack() as closing:
        if shared is not None:
            closing.push_async_callback(shared.close)
        for transport in {id(t): t for t in spoken.values()}.values():
            closing.push_async_callback(transport.close)
        if book is not None:
            closing.push_async_callback(book.close)
        if shared is not None:
            session = await _joined(gate, shared, crawl, tell)
            # After the gate, which grants no turn any more: its homes leave with what is left of their delays.
            closing.push_async_callback(session.close)
        closing.push_async_callback(gate.close)
        yield gate


def _refuse_odd(
    throttle: object, clock: object, listener: object, transports: object, addresses: object
) -> None:
    """Refuse objects that lack a method of their port, so that a crawl does not fail later."""
    for option, value, call, kind in (
        ("throttle", throttle, "rest", "a Throttle of polite.throttles"),
        ("clock", clock, "call_at", "a Clock of polite.ports"),
        ("listener", listener, "__call__", "a Listener of polite.ports"),
        ("addresses", addresses, "addresses", "an AddressSource of polite.ports"),
    ):
        if value is not None and not callable(getattr(value, call, None)):
            raise InvalidOption(f"{option} must be {kind}, got {value!r}")
    if transports is not None and not isinstance(transports, Mapping):
        raise InvalidOption(f"transports must be a mapping of schemes to transports, got {transports!r}")
    for scheme, transport in (transports or {}).items():
        if not callable(getattr(transport, "get", None)) or not callable(getattr(transport, "close", None)):
            raise InvalidOption(
                f"transports[{scheme!r}] must be a Transport of polite.ports, got {transport!r}"
            )


def is_shared(store: object) -> bool:
    """Whether a store is shared by many processes: a URL, or a client of redis.asyncio."""
    if isinstance(store, str):
        return "://" in store
    return any(kind.__module__.startswith("redis.asyncio") for kind in type(store).__mro__)


async def _opened(store: object, clock: Clock, crawl: str | None) -> "SharedStore | None":
    """Connect to a shared store; None if the store is of another kind."""
    if not is_shared(store):
        if crawl is not None:
            raise InvalidOption(
                f'crawl={crawl!r} needs a shared store, such as store="redis://example.com/0"'
            )
        return None
    # Imported here: a crawler on one machine needs no package for it.
    from polite.stores.redis.opening import open_shared

    return await open_shared(store, clock)


async def _joined(gate: Gate, shared: "SharedStore", crawl: str | None, tell: Listener) -> "Session":
    """Begin or join a crawl, and have the gate grant turns at the homes that this process holds there."""
    from polite.stores.redis.crawl import DEFAULT_CRAWL
    from polite.stores.redis.opening import LEASE_S
    from polite.stores.redis.session import Session

    home = gate.pacing.home
    name = DEFAULT_CRAWL if crawl is None else crawl
    terms = await shared.join(name, home="custom" if callable(home) else home, lease_s=LEASE_S)
    session = Session(
        shared.link,
        gate.services.clock,
        name,
        partitions=terms.partitions,
        lease_s=terms.lease_s,
        # For tasks, which only a frontier has.
        keyed=False,
        max_tries=1,
        max_done=1,
        tell=tell,
    )
    share_turns(gate, session, lease_s=terms.lease_s)
    session.begin()
    return session


async def _kept(store: object, clock: Clock) -> RobotsStore | None:
    """Return the store. A file is opened now, so that one that cannot be used is known at once."""
    if store is None or isinstance(store, RobotsStore):
        return store
    if not isinstance(store, str | os.PathLike):
        raise InvalidOption(
            f"store must be a RobotsStore, the name of a file, or a shared store, got {store!r}"
        )
    # Imported here: a crawler without a store loads no database.
    from polite.stores.sqlite import SqliteStore

    file = SqliteStore(store, wall=clock.wall)
    try:
        await file.open()
    except BaseException:
        # A cancellation too: its threads would go on running.
        await file.close()
        raise
    return file


def _keep_back_off(store: RobotsStore | None, clock: Clock) -> Callable[[Origin, float, str], None] | None:
    """Return a function that saves a long back-off, if the store keeps such."""
    if not isinstance(store, BackOffStore):
        return None

    def keep(origin: Origin, rest_s: float, because: str) -> None:
        now = clock.wall()
        store.hold(origin, SavedBackOff(now, now + rest_s, because))

    return keep


def _transports(
    agent: UserAgent, fetching: FetchPolicy, given: Mapping[str, Transport]
) -> dict[str, Transport]:
    # Imported here, so that `import polite` loads no HTTP client.
    from polite.transports.ftp import FtpTransport
    from polite.transports.http import HttpTransport

    http = HttpTransport(agent.header, fetching)
    ours: dict[str, Transport] = {"http": http, "https": http}
    if fetching.proxy is None:
        # FTP would bypass the proxy.
        ours["ftp"] = FtpTransport(agent.header, fetching)
    return ours | dict(given)


def _scopes(pacing: PacingPolicy, book: AddressBook | None) -> ScopePolicy:
    """Return the function that names the scopes of the policy."""
    if not isinstance(pacing.scopes, Scopes):
        return pacing.scopes
    if pacing.scopes.domain is None:
        return ScopeResolver(pacing.scopes, addresses=book)
    return ScopeResolver(pacing.scopes, domain_of=_registrable_domains("Scopes(domain=...)"), addresses=book)


def share_turns(
    gate: Gate, homes: Homes, *, lease_s: float, robots: RobotsStore | None = None
) -> SharedPacer:
    """Have a gate grant turns only at homes that this process holds. The session becomes what its pacer is told of.

    Args:
        robots: Keeps robots.txt results and back-offs for all processes, if the gate has no store of its own.

    Raises:
        InvalidOption: The gate has granted turns already, of which other processes know nothing; or its homes cannot be named.
    """
    services = gate.services
    turns, clock = services.turns, services.clock
    if turns.shared or not (isinstance(turns.pacer, LocalPacer) and turns.pacer.untouched):
        raise InvalidOption(
            "the gate has sent requests already, of which other processes know nothing: open the frontier before the first "
            "permit or check, or name the shared store in open_gate(store=...)"
        )
    pacer = SharedPacer(clock, homes, _home_names(turns.policies), turns.policies, lease_s=lease_s)
    homes.tenant = pacer
    turns.share(pacer, keep_back_off=_keep_back_off(robots, clock))
    if robots is not None:
        services.origins.use_store(robots)
    return pacer


def _home_names(policies: EffectivePolicies) -> HomeNames:
    """Return what names the homes of a policy."""
    kind, resolver = policies.policy.home, policies.scopes
    domain_of = _registrable_domains('PacingPolicy(home="domain")') if kind == "domain" else None
    if not isinstance(resolver, ScopeResolver):
        return HomeNames(kind, domain_of=domain_of)
    return HomeNames(kind, divided=resolver.divided, domain_of=domain_of, addresses=resolver.addresses)


def _registrable_domains(option: str) -> Callable[[str], str | None]:
    # Imported here: the list is an optional package.
    try:
        from polite.pacing.public_suffix import registrable_domains
    except ImportError as error:
        raise InvalidOption(
            f"{option} needs the public suffix list: pip install 'polite-crawl[domains]'"
        ) from error
    return registrable_domains()


def _address_book(
    pacing: PacingPolicy, fetching: FetchPolicy, clock: Clock, source: AddressSource | None
) -> AddressBook | None:
    """Return the address book, if addresses are scopes."""
    if not isinstance(pacing.scopes, Scopes) or pacing.scopes.address is None:
        return None
    if source is None and fetching.proxy is not None:
        # Lookups would bypass the proxy, and the proxy may resolve names differently.
        raise InvalidOption("Scopes(address=...) with FetchPolicy.proxy needs open_gate(addresses=...)")
    if source is None:
        from polite.transports.resolver import resolver_for

        source = resolver_for(fetching)
    return AddressBook(source, clock)


@asynccontextmanager
async def open_frontier(
    gate: Gate,
    *,
    store: str | os.PathLike[str] | None = None,
    scheduler: Scheduler | None = None,
    **options: Unpack[FrontierOptions],
) -> AsyncIterator[Frontier]:
    """Open a frontier, the queue of a crawl, and stop it when the block exits.

    Example:
        async with polite.open_frontier(gate, store="queue.sqlite") as frontier:
            await frontier.put("https://example.com/")

    Args:
        gate: The gate that grants the turns.
        store: A file that keeps the tasks, so that a crawl that ends or is killed continues when the file is opened again.
            A file serves one frontier at a time, and no gate. By default tasks are kept in memory. In a file, a task's payload
            must be a JSON value.
        scheduler: Decides the order of tasks; `schedulers.Fifo()` by default.
        **options: Options of Frontier.

    Raises:
        InvalidOption: An option has the wrong type or value.
        StoreFailed: The file cannot be used.
    """
    if store is None:
        frontier = Frontier(gate, scheduler=scheduler, **options)
        try:
            yield frontier
        finally:
            frontier.stop()
        return
    parts = Parts(gate.services, scheduler, Limits(**options))
    # Imported here: a crawler that keeps nothing loads no database.
    from polite.frontier.durable.active_origin import TASKS_PER_ORIGIN
    from polite.frontier.durable.store import DurableTaskStore
    from polite.frontier.sqlite.backend import SqliteBackend
    from polite.frontier.sqlite.database import QueueFile

    order = _order(scheduler)
    file = QueueFile(
        _queue_path(store),
        order=order,
        tasks_per_origin=TASKS_PER_ORIGIN,
        max_done=parts.limits.max_done,
    )
    kept = DurableTaskStore(parts, SqliteBackend(file), order)
    parts.keep_in(kept)
    try:
        await kept.begin()
        frontier = Frontier.from_parts(gate, parts)
        try:
            yield frontier
        finally:
            frontier.stop()
    finally:
        await kept.close()


def _order(scheduler: Scheduler | None) -> FileOrder:
    order: FileOrder = getattr(scheduler, "order", "fifo")
    if order not in tuple(ORDERS):
        raise InvalidOption(
            f"{type(scheduler).__name__}.order={order!r}: one of {', '.join(ORDERS)} is needed"
        )
    return order


def _queue_path(store: str | os.PathLike[str]) -> Path:
    name = os.fspath(store) if isinstance(store, os.PathLike) else store
    if type(name) is not str or not name or name == ":memory:" or "\0" in name or "://" in name:
        raise InvalidOption(f"store={store!r}: the name of a file is needed; None is for memory")
    return Path(name)
