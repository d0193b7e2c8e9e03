"""Builds a gate: its pacer, transports, stores and lookups."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, ParamSpec, TypeVar

from polite.clock import SystemClock
from polite.compose.checked import checked_store, checked_transports, checked_validators
from polite.compose.shared import join, keep_back_off, kind_of, opened, refuse_mistyped
from polite.errors import InvalidOption, StoreFailed
from polite.gate.addresses import AddressBook
from polite.gate.fetcher import Downloads, RobotsFetcher, Signatures
from polite.gate.gate import Gate
from polite.gate.journal import Journal
from polite.gate.operator import OrderStore
from polite.gate.recrawl import Recrawl
from polite.gate.rules import OriginManager
from polite.gate.services import Services
from polite.gate.tally import Notifier
from polite.gate.turns import Turns
from polite.options import instance
from polite.pacing.effective_policy import EffectivePolicies, require_throttle
from polite.pacing.pacer import LocalPacer, process_delays
from polite.pacing.policy import PacingPolicy
from polite.pacing.scopes import ScopePolicy, ScopeResolver, Scopes, registrable_domains
from polite.pacing.throttle import Throttle
from polite.ports import AddressSource, Clock, Listener, RobotsStore, Signer, Transport, ValidatorStore
from polite.recrawl import RecrawlPolicy
from polite.robots.agent import UserAgent
from polite.robots.policy import FetchPolicy, RobotsPolicy
from polite.stores.memory import MemoryValidators

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver
    from redis.asyncio import Redis, RedisCluster

    from polite.stores.redis.address import Address
    from polite.stores.redis.opening import SharedStore

T = TypeVar("T", RobotsPolicy, PacingPolicy, FetchPolicy)
Opened = TypeVar("Opened")
P = ParamSpec("P")


class _Opening(AbstractAsyncContextManager[Opened], Generic[Opened]):
    """What `open_gate` and its like return: nothing is open before `async with`, and whatever else is tried says this."""

    def __init__(self, name: str, manager: AbstractAsyncContextManager[Opened]) -> None:
        self._manager = manager
        self._entered = False
        self._name = name
        block = f"async with polite.{name}(...) as {name[5:]}:"
        self._first = f"polite.{name}(...) opens nothing by itself: {block}"

    async def __aenter__(self) -> Opened:
        if self._entered:
            said = f"what polite.{self._name}(...) returns opens once: call it again for another block"
            raise TypeError(said)
        self._entered = True
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self._first} ... .{name}", name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            self.__getattr__(name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<{self._first} ...>"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(f"{self._first} ...")

    # The other first uses: `await`, `with`, `async for` and a copy.
    __await__ = __enter__ = __exit__ = __aiter__ = __reduce_ex__ = _refuse


def opening(function: Callable[P, AsyncIterator[Opened]]) -> Callable[P, AbstractAsyncContextManager[Opened]]:
    """Make an async context manager as `asynccontextmanager` does. It says if its block was forgotten."""
    manager, name = asynccontextmanager(function), function.__name__.lstrip("_")

    @wraps(function)
    def opened(*args: P.args, **options: P.kwargs) -> AbstractAsyncContextManager[Opened]:
        return _Opening(name, manager(*args, **options))

    return opened


def checked(option: str, value: T | None, kind: type[T]) -> T:
    """Return a policy, the default one for None. Raises InvalidOption."""
    return kind() if value is None else instance(option, value, kind)


@opening
async def open_gate(
    agent: str | UserAgent,
    *,
    robots: RobotsPolicy | None = None,
    pacing: PacingPolicy | None = None,
    fetching: FetchPolicy | None = None,
    store: "RobotsStore | Redis | RedisCluster | Address | str | os.PathLike[str] | None" = None,
    crawl: str | None = None,
    lease: float | None = None,
    throttle: Throttle | None = None,
    listener: Listener | None = None,
    clock: Clock | None = None,
    transports: Mapping[str, Transport] | None = None,
    addresses: AddressSource | None = None,
    resolver: "Mapping[str, str] | AbstractResolver | None" = None,
    recrawl: RecrawlPolicy | None = None,
    validators: ValidatorStore | None = None,
    signer: Signer | None = None,
    journal: "str | os.PathLike[str] | None" = None,
) -> AsyncIterator[Gate]:
    """Open a gate for one crawler, and close it when the block exits.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)", store="robots.sqlite") as gate:
            async with gate.permit("https://example.com/about") as permit:
                ...  # fetch permit.request_url, and report the response

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
        lease: How long the shared store waits for a process that ended without a word, 1 to 300 seconds; 15 by default. The same
            for all processes of a crawl.
        throttle: Decides delays together with `pacing`: the longer one counts, unless `PacingPolicy.may_undercut_site` says
            otherwise. It is called with some outcomes at once, and refused if it does not return a Pause.
        listener: Receives each event, or those that its attribute `events` names.
        clock: Replaces the system's clocks, for tests. On a `polite.testing.VirtualTimeLoop` it is the loop's by default.
        transports: Transports by scheme, besides http, https and ftp or instead of them (L9 in docs/spec.md). The gate closes them.
        addresses: Looks up addresses for `Scopes(address=...)`, instead of the nameservers of `fetching`. The gate closes it.
        resolver: Names the addresses of hosts, for tests and staging sites: `{"example.com": "10.0.0.7"}`. A host may be
            "host:port", and an address "address:port". Other hosts are looked up. Or an `aiohttp.abc.AbstractResolver`, which you
            close. An address must be one that `fetching` permits. Give `guarded_connector` the same.
        recrawl: Remember ETag and Last-Modified of each page that is reported, for `Gate.conditional`, and say when it is due again
            (`Permit.due`). Without it nothing is remembered.
        validators: Keeps them. By default it is `store` if that can (a file can), and otherwise the gate's memory. The gate closes
            it.
        signer: Signs each request for robots.txt and sitemaps, and what `Permit.sign` is asked for: `polite.WebBotAuth`, or a
            Signer of your own.
        journal: The name of a file to which each decision is appended, for `polite journal`. One gate writes to a file. A permit
            that cannot be recorded, on a full disk say, raises StoreFailed instead.

    Raises:
        InvalidUserAgent: The agent cannot be sent, or has no product token.
        InvalidOption: An option has the wrong type or value.
        StoreFailed: The file of the store or the journal cannot be used, or the shared store's server is not reached or refuses.
    """
    agent = agent if isinstance(agent, UserAgent) else UserAgent(agent)
    robots = checked("robots", robots, RobotsPolicy)
    pacing = checked("pacing", pacing, PacingPolicy)
    fetching = checked("fetching", fetching, FetchPolicy)
    if fetching.max_bytes > robots.dialect.max_bytes:
        # What is read beyond the dialect's limit counts.
        robots = replace(robots, dialect=replace(robots.dialect, max_bytes=fetching.max_bytes))
    _refuse_odd(locals())
    clock = clock or getattr(asyncio.get_running_loop(), "polite_clock", None) or SystemClock()
    if throttle is not None:
        require_throttle(throttle, clock.wall())
    signatures = None if signer is None else Signatures(signer, clock)
    spoken = _transports(agent, fetching, checked_transports(transports or {}), resolver)
    tell = Notifier()
    if listener is not None:
        tell.add(listener)
    scopes, book = _scopes(pacing, fetching, clock, addresses, resolver)
    find = None if book is None else book.find
    policies = EffectivePolicies(pacing, throttle, scopes=scopes)
    concurrency, delay = policies.limits
    pacer = LocalPacer(clock, concurrency=concurrency, provisional_s=delay, max_waiting=pacing.max_waiting)
    pacer.join(process_delays(clock))
    shared = await opened(store, clock, crawl, lease)
    own = shared.robots if shared is not None else await _kept(store, clock)
    if recrawl is not None and validators is None:
        both: object = own
        validators = both if isinstance(both, ValidatorStore) else MemoryValidators()
    kept, remembered = checked_store(own), checked_validators(validators)
    turns = Turns(pacer, policies, clock, tell, keep_back_off=keep_back_off(kept, clock), find=find)
    downloads = Downloads(spoken, fetching, signatures)
    fetcher = RobotsFetcher(downloads, turns, clock, robots)
    origins = OriginManager(agent, fetcher, turns, clock, robots, tell, store=kept)
    pages = None if recrawl is None or remembered is None else Recrawl(recrawl, remembered, clock)
    written = None if journal is None else Journal(Path(journal), clock, agent, robots.dialect)
    gate = Gate(Services(clock, origins, turns, tell, downloads, pages, written))
    orders = _orders(own, shared, clock)
    # Each is closed even if closing another fails or is cancelled. What is shared comes after the gate, which grants no turn any
    # more by then: homes leave with what is left of their delays.
    async with gate.services.resources as resources, AsyncExitStack() as closing:
        if shared is not None:
            resources.push_async_callback(shared.close)
        # A transport may serve several schemes.
        for each in (*{id(each): each for each in spoken.values()}.values(), remembered, book):
            if each is not None:
                closing.push_async_callback(each.close)
        if shared is not None:
            await join(gate, shared, crawl, lease_s=lease)
        if written is not None:
            await _begin(written, resources)
            tell.add(written)
        closing.push_async_callback(gate.close)
        if orders is not None:
            await turns.operator.use(orders)
        yield gate


def _refuse_odd(given: Mapping[str, object]) -> None:
    """Refuse options of `open_gate` that lack a method of their port, so that a crawl does not fail later."""
    for option, kind, needed in (
        ("recrawl", RecrawlPolicy, "a RecrawlPolicy"),
        ("validators", ValidatorStore, "a ValidatorStore of polite.ports"),
        ("clock", "call_at", "a Clock of polite.ports"),
        ("listener", "__call__", "a Listener of polite.ports"),
        ("addresses", "addresses", "an AddressSource of polite.ports"),
        ("signer", "sign", "a Signer of polite.ports, such as polite.WebBotAuth"),
        ("transports", Mapping, "a mapping of schemes to transports"),
    ):
        value = given[option]
        fits = callable(getattr(value, kind, None)) if isinstance(kind, str) else isinstance(value, kind)
        if value is not None and not fits:
            raise InvalidOption(f"{option} must be {needed}, got {value!r}")
    if given["validators"] is not None and given["recrawl"] is None:
        raise InvalidOption("validators needs recrawl=RecrawlPolicy(): without it nothing is remembered")
    if not isinstance(given["journal"], str | os.PathLike | None):
        raise InvalidOption(f"journal must be the name of a file, got {kind_of(given['journal'])}")


async def _begin(journal: Journal, resources: AsyncExitStack) -> None:
    """Open a journal, which no other gate writes to. It is closed after the gate. Raises StoreFailed."""
    # Imported here: it loads a database.
    from polite.frontier.sqlite.file_lock import FileLock

    lock = FileLock(journal.path)
    try:
        if not lock.acquire(0.0):
            raise StoreFailed(f"{journal.path} is the journal of another gate: name one file for each")
    except OSError as error:
        raise StoreFailed(f"{journal.path}: the journal cannot be written: {error.strerror}") from error
    resources.callback(lock.release)
    await journal.open()
    resources.push_async_callback(journal.close)


async def _kept(store: object, clock: Clock) -> RobotsStore | None:
    """Return the store. A file is opened now, so that one that cannot be used is known at once."""
    if store is None or (isinstance(store, RobotsStore) and not isinstance(store, type)):
        return store
    if not isinstance(store, str | os.PathLike):
        kinds = "a RobotsStore, the name of a file, or a URL or redis.asyncio client of a shared store"
        raise InvalidOption(f"store must be {kinds}, got {kind_of(store)}")
    if isinstance(store, str):
        refuse_mistyped(store)
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


def _orders(store: RobotsStore | None, shared: "SharedStore | None", clock: Clock) -> OrderStore | None:
    """Return what keeps the operator's orders: the server, or a file beside that of the store."""
    if shared is not None:
        from polite.stores.redis.orders import RedisOrders

        return RedisOrders(shared.link, clock)
    path = getattr(store, "path", None)
    if not isinstance(path, Path):
        return None
    from polite.stores.orders import FileOrders

    return FileOrders(path)


def _transports(
    agent: UserAgent,
    fetching: FetchPolicy,
    given: Mapping[str, Transport],
    resolver: "Mapping[str, str] | AbstractResolver | None",
) -> dict[str, Transport]:
    # Imported here, so that `import polite` loads no HTTP client.
    from polite.transports.ftp import FtpTransport
    from polite.transports.http import HttpTransport

    http = HttpTransport(agent.header, fetching, resolver)
    ours: dict[str, Transport] = {"http": http, "https": http}
    if fetching.proxy is None:
        # FTP would bypass the proxy.
        ours["ftp"] = FtpTransport(agent.header, fetching, resolver)
    return ours | dict(given)


def _scopes(
    pacing: PacingPolicy,
    fetching: FetchPolicy,
    clock: Clock,
    source: AddressSource | None,
    resolver: "Mapping[str, str] | AbstractResolver | None",
) -> tuple[ScopePolicy, AddressBook | None]:
    """Return the function that names the scopes of the policy, and the address book if addresses are scopes."""
    scopes, book = pacing.scopes, None
    if not isinstance(scopes, Scopes):
        return scopes, None
    if scopes.address is not None:
        if source is None and fetching.proxy is not None:
            # Lookups would bypass the proxy, and the proxy may resolve names differently.
            raise InvalidOption("Scopes(address=...) with FetchPolicy.proxy needs open_gate(addresses=...)")
        if source is None:
            from polite.transports.resolver import named_resolver

            source = named_resolver(fetching, resolver)
        book = AddressBook(source, clock)
    domain_of = None if scopes.domain is None else registrable_domains("Scopes(domain=...)")
    return ScopeResolver(scopes, domain_of=domain_of, addresses=book), book
