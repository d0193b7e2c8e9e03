"""Has a gate join a crawl on a shared store: its turns are granted at the homes that this process holds there."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.origin import Origin
from polite.pacers.homes import HomeNames, Homes
from polite.pacers.shared import SharedPacer
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.outcome import Pause
from polite.pacing.pacer import process_delays
from polite.pacing.scopes import ScopeName, ScopeResolver, Scopes, registrable_domains
from polite.ports import LONGEST_BACK_OFF_S, BackOffStore, Clock, RobotsStore, SavedBackOff
from polite.stores.redis.address import has_scheme

if TYPE_CHECKING:
    from polite.stores.redis.opening import SharedStore
    from polite.stores.redis.session import Session


@dataclass(slots=True, eq=False)
class Membership:
    """A gate's part in a crawl on a shared store.

    Attributes:
        crawl: The crawl's name.
        named: Whether the user gave that name. Otherwise a frontier may still give another.
    """

    store: "SharedStore"
    crawl: str
    named: bool
    lease_s: float
    session: "Session"
    pacer: SharedPacer


# The crawls that open gates have joined.
memberships: WeakKeyDictionary[Gate, Membership] = WeakKeyDictionary()


def refuse_mistyped(name: str) -> None:
    """Refuse what is no file but a mistyped address, and do not show it: it may have a password."""
    if re.match(r"(redis|valkey)s?(\+\w+)?:?/", name) or re.search(r":[^/@]*@", name):
        neither = "neither the name of a file nor an address such as redis://example.com/0"
        raise InvalidOption(f"store: {neither}; it is not shown, since it may have a password")


def is_shared(store: object) -> bool:
    """Whether a store is shared by many processes: a URL, its parts, or a client of redis.asyncio."""
    if isinstance(store, str):
        # With one slash it is a URL with a slip, and no file, whose name would be shown: it may have a password.
        return "://" in store or has_scheme(store)
    modules = [kind.__module__ for kind in type(store).__mro__]
    return any(name.startswith(("redis.asyncio", "polite.stores.redis.address")) for name in modules)


async def opened(
    store: object, clock: Clock, crawl: str | None, lease_s: float | None
) -> "SharedStore | None":
    """Connect to a shared store; None if the store is of another kind."""
    if not is_shared(store):
        for option, value in (("crawl", crawl), ("lease", lease_s)):
            if value is not None:
                # A blocking client of redis-py is easily taken for the other.
                or_else = f" or a client of redis.asyncio, got {kind_of(store)}"
                instead = "" if store is None or isinstance(store, str) else or_else
                needs = 'needs a shared store, such as store="redis://example.com/0"'
                raise InvalidOption(f"{option}={value!r} {needs}{instead}")
        return None
    # Imported here: a crawler on one machine needs no package for it.
    from polite.stores.redis.opening import open_shared

    return await open_shared(store, clock)


def kind_of(value: object) -> str:
    """Return what kind of thing was given, instead of its repr, which may have credentials."""
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}".replace(" builtins.", " ")


async def join(
    gate: Gate,
    store: "SharedStore",
    crawl: str | None,
    *,
    lease_s: float | None,
    order: str | None = None,
    robots: RobotsStore | None = None,
) -> Membership:
    """Begin or join a crawl, and have the gate grant turns at the homes that this process holds there.

    Args:
        gate: The gate, which has granted no turn yet.
        store: The opened store.
        crawl: The crawl's name; None for the default.
        lease_s: How long the server waits for a process that ended without a word; None for the default.
        order: The order of tasks, of a frontier.
        robots: Keeps robots.txt results and back-offs for all processes, if the gate has no store of its own.
    """
    from polite.stores.redis.opening import DEFAULT_CRAWL, LEASE_S
    from polite.stores.redis.session import Session

    name = DEFAULT_CRAWL if crawl is None else crawl
    lease_s = LEASE_S if lease_s is None else lease_s
    partitions = await store.join(name, home=_kind_of_home(gate), lease_s=lease_s, order=order)
    services = gate.services
    tell = services.listener
    session = Session(store.link, services.clock, name, partitions=partitions, lease_s=lease_s, tell=tell)
    pacer = share_turns(gate, session.homes, lease_s=lease_s, robots=robots, anew=gate in memberships)
    services.resources.push_async_callback(session.close)
    found = Membership(store, name, crawl is not None, lease_s, session, pacer)
    memberships[gate] = found
    # A value that refers to its key would keep both for ever.
    services.resources.callback(memberships.pop, gate, None)
    session.begin()
    return found


async def join_frontier(
    gate: Gate, store: object, crawl: str | None, *, lease_s: float | None, order: str
) -> Membership:
    """Return the gate's part in the crawl of a frontier. A gate that has none joins the crawl.

    Raises:
        InvalidOption: The gate is in another crawl, or on another server; or the crawl has other terms.
        StoreFailed: The server is not reached, or refuses.
    """
    if gate.pacing.home == "address":
        said = 'PacingPolicy(home="address") is for gates: a frontier of many processes keeps tasks by "host" or "domain"'
        raise InvalidOption(said)
    found = memberships.get(gate)
    if found is None:
        shared = await opened(store, gate.services.clock, crawl, lease_s)
        if shared is None:
            raise InvalidOption(f"store={store!r} is not shared")
        gate.services.resources.push_async_callback(shared.close)
        from polite.stores.redis.orders import RedisOrders

        if not gate.services.turns.operator.kept:
            await gate.services.turns.operator.use(RedisOrders(shared.link, gate.services.clock))
        return await join(gate, shared, crawl, lease_s=lease_s, order=order, robots=shared.robots)
    _require_same_server(found, store)
    if crawl is not None and crawl != found.crawl:
        if found.named or not found.pacer.untouched:
            other = f"the gate is in crawl {found.crawl!r} already; give both the same name"
            raise InvalidOption(f"crawl={crawl!r}: {other}: open_gate(crawl={crawl!r})")
        # Its session, which has taken no home, ends; the gate becomes one of the frontier's crawl.
        found.session.end()
        return await join(gate, found.store, crawl, lease_s=lease_s, order=order)
    if lease_s is not None and lease_s != found.lease_s:
        has = f"the gate is in crawl {found.crawl!r} with a lease of {found.lease_s:g} s"
        raise InvalidOption(f"lease={lease_s!r}: {has}")
    await found.store.join(found.crawl, home=_kind_of_home(gate), lease_s=found.lease_s, order=order)
    return found


def _kind_of_home(gate: Gate) -> Literal["host", "domain", "address", "custom"]:
    home = gate.pacing.home
    return "custom" if callable(home) else home


def _require_same_server(found: Membership, store: object) -> None:
    if store is None:
        return
    from polite.stores.redis.address import Address
    from polite.stores.redis.link import RedisLink

    match store:
        case str():
            name = Address.of(store).name
        case Address():
            name = store.name
        case _:
            name = RedisLink.of(store).name
    if name != found.store.link.name:
        said = f"store={name!r}: the gate is on {found.store.link.name!r}; a gate and its frontiers share one store"
        raise InvalidOption(said)


def share_turns(
    gate: Gate, homes: Homes, *, lease_s: float, robots: RobotsStore | None = None, anew: bool = False
) -> SharedPacer:
    """Have a gate grant turns only at homes that this process holds. The session becomes what its pacer is told of.

    Args:
        gate: The gate, which has granted no turn yet.
        homes: The homes of this process.
        lease_s: How long the server waits for a process that ended without a word.
        robots: Keeps robots.txt results and back-offs for all processes, if the gate has no store of its own.
        anew: Whether the gate is shared already, and has other homes from now on.

    Raises:
        InvalidOption: The gate has granted turns already, of which other processes know nothing; or its homes cannot be named.
    """
    services = gate.services
    turns, clock = services.turns, services.clock
    if turns.shared != anew or not turns.pacer.untouched:
        sent = "the gate has sent requests already, of which other processes know nothing"
        hint = "open the frontier before the first permit or check, or name the shared store in open_gate(store=...)"
        raise InvalidOption(f"{sent}: {hint}")
    pacer = SharedPacer(clock, homes, _home_names(turns.policies), turns.policies, lease_s=lease_s)
    homes.tenant = pacer
    pacer.join(process_delays(clock), instead_of=turns.pacer)
    turns.share(pacer, keep_back_off=keep_back_off(robots, clock))
    if robots is not None:
        services.origins.use_store(robots)
    return pacer


def keep_back_off(store: RobotsStore | None, clock: Clock) -> Callable[[Origin, Pause], None] | None:
    """Return a function that saves a long back-off, if the store keeps such."""
    if not isinstance(store, BackOffStore):
        return None

    def keep(origin: Origin, pause: Pause) -> None:
        now = clock.wall()
        until = now + min(pause.seconds, LONGEST_BACK_OFF_S)
        store.hold(origin, SavedBackOff(now, until, pause.because, pause.memory))

    return keep


def _home_names(policies: EffectivePolicies) -> HomeNames:
    """Return what names the homes of a policy."""
    kind, resolver = policies.policy.home, policies.scopes
    domain_of = registrable_domains('PacingPolicy(home="domain")') if kind == "domain" else None
    if not isinstance(resolver, ScopeResolver):
        return HomeNames(kind, domain_of=domain_of)
    scopes = policies.policy.scopes
    for name, limit in scopes.limits.items() if isinstance(scopes, Scopes) else ():
        if limit.budgeted and resolver.divided(ScopeName(name, "")):
            cannot = "cannot be kept in a shared crawl, whose processes divide that scope"
            raise InvalidOption(f"ScopeLimit: max_pages and max_bytes of {name!r} {cannot}")
    return HomeNames(kind, divided=resolver.divided, domain_of=domain_of, addresses=resolver.addresses)
