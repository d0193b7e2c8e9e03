"""Opens a shared store: from an option to a checked server, and to the terms that all processes of a crawl agree on.

Importing it needs the package `redis`, or it raises.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from polite.errors import InvalidOption, StoreFailed
from polite.log import fields, log
from polite.options import number
from polite.ports import Clock
from polite.stores.redis.address import Address
from polite.stores.redis.step import Unreached

try:
    from polite.stores.redis.link import RedisLink, Script
    from polite.stores.redis.robots import RedisStore
except ImportError as _error:
    # Said here once, for all who import this file when a store is opened.
    raise InvalidOption("a shared store needs redis: pip install 'polite-crawl[redis]'") from _error

# Partitions of a new crawl: a cluster spreads them over its masters.
_PER_MASTER = 4
LEASE_S = 15.0
# Scripts reach keys that they compute, and read TIME before they write: both are sure from 7.0 on.
_LEAST = (7, 0)
# Servers that speak the protocol, but run scripts differently. Each has its own version beside `redis_version`.
_OTHERS = {"dragonfly_version": "Dragonfly", "kvrocks_version": "Kvrocks", "garnet_version": "Garnet"}
_CHANGE_POLICY = "CONFIG SET maxmemory-policy noeviction"
# While a crawl is opened: seconds in which a slow server is asked again, and between two attempts.
SLOW_S, _PAUSE_S = 10.0, 0.2

SCHEMA = 1
DEFAULT_CRAWL = "default"
# A bound for what a damaged hash could name.
_MAX_PARTITIONS = 4_096
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_SCRIPT = Script("crawl")

Home = Literal["host", "domain", "address", "custom"]
T = TypeVar("T")


async def reached(link: RedisLink, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what `ask` returns. A server that loads its data, or whose machine is busy, is asked again for SLOW_S seconds.

    Raises:
        StoreFailed: It is not reached, or the error of `ask`. The message says what to change.
    """
    until = asyncio.get_running_loop().time() + SLOW_S
    while True:
        try:
            return await ask()
        except Unreached as error:
            if not error.slow or asyncio.get_running_loop().time() >= until:
                hint = _hint(link, str(error))
                raise StoreFailed(f"{link.name}: the server is not reached: {error}{hint}") from error
        await asyncio.sleep(_PAUSE_S)


async def checked(link: RedisLink) -> int:
    """Check the server behind a link, in a cluster each master. Return how many partitions a new crawl has there.

    Raises:
        StoreFailed: It is not reached, or cannot hold a crawl. The message says what to change.
    """
    masters = await reached(link, link.masters)
    for node in masters:
        await reached(link, partial(_check_node, link, node))
    return _PER_MASTER * len(masters) if link.is_cluster else 1


async def _check_node(link: RedisLink, node: Any) -> None:  # noqa: ANN401 - of redis-py
    info: dict[str, Any] = {}
    for section in ("server", "memory", "replication", "persistence", "cluster"):
        told = await link.call("INFO", section, node=node)
        info |= told if isinstance(told, dict) else {}
    _check_version(link, info)
    if info.get("role") != "master":
        raise StoreFailed(
            f"{link.name}: this server is a read-only replica; use the address of its master "
            f"({info.get('master_host')}:{info.get('master_port')}), or of its Sentinels as redis+sentinel://"
        )
    if info.get("cluster_enabled") and not link.is_cluster:
        scheme, _, rest = link.name.partition("://")
        raise StoreFailed(
            f"{link.name}: this server is a node of a cluster; use {scheme}+cluster://{rest.partition('/')[0]} as its address"
        )
    await _check_eviction(link, node, info)
    if not info.get("aof_enabled"):
        log.warning(
            "%s: appendonly is no, so a restart of the server loses the crawl, or all since the last snapshot; "
            "CONFIG SET appendonly yes keeps it",
            link.name,
            extra=fields("store_not_durable", store=link.name),
        )


def _check_version(link: RedisLink, info: dict[str, Any]) -> None:
    needed = "and a shared crawl needs"
    for key, name in _OTHERS.items():
        if key in info:
            raise StoreFailed(f"{link.name}: this is {name}, {needed} Redis or Valkey 7.0 or later")
    version = str(info.get("valkey_version") or info.get("redis_version") or "")
    name = "Valkey" if "valkey_version" in info else "Redis"
    parts = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if not parts:
        raise StoreFailed(f"{link.name}: INFO names no version: this is neither Redis nor Valkey")
    if parts < _LEAST:
        raise StoreFailed(f"{link.name}: this is {name} {version}, {needed} 7.0 or later")


async def _check_eviction(link: RedisLink, node: Any, info: dict[str, Any]) -> None:  # noqa: ANN401 - of redis-py
    """A server that evicts keys would evict queues and owners. Managed services often refuse CONFIG, hence INFO."""
    policy = info.get("maxmemory_policy") or await _configured_policy(link, node)
    if policy is None:
        log.warning(
            "%s: the server does not tell its maxmemory-policy; it must be noeviction, or it may evict parts of the crawl",
            link.name,
            extra=fields("store_may_evict", store=link.name),
        )
    elif policy != "noeviction":
        raise StoreFailed(
            f"{link.name}: its maxmemory-policy is {policy}, so it may evict parts of the crawl: "
            f"run {_CHANGE_POLICY} (and CONFIG REWRITE to keep it)"
        )


async def _configured_policy(link: RedisLink, node: Any) -> str | None:  # noqa: ANN401 - of redis-py
    try:
        told = await link.call("CONFIG", "GET", "maxmemory-policy", node=node)
    except StoreFailed:
        return None
    flat = [each for pair in told.items() for each in pair] if isinstance(told, dict) else list(told or [])
    words = [each.decode() if isinstance(each, bytes) else str(each) for each in flat]
    return words[1] if len(words) > 1 else None


def _hint(link: RedisLink, because: str) -> str:
    """Return what most often is wrong."""
    scheme = link.name.partition("://")[0]
    family, plus, kind = scheme.partition("+")
    if "Cluster mode is not enabled" in because:
        return f" (a single server has an address such as {family}://{link.name.partition('://')[2]})"
    if "CERTIFICATE_VERIFY_FAILED" in because:
        return " (a private authority goes into the address as ?ssl_ca_certs=ca.pem)"
    if family in ("rediss", "valkeys") and ("SSL" in because or "imeout" in because):
        return f" (a server without TLS has an address with {family[:-1]}{plus}{kind}://)"
    if family in ("redis", "valkey") and "closed by server" in because:
        return f" (a server with TLS has an address with {family}s{plus}{kind}://; is it Redis or Valkey at all?)"
    return ""


def crawl_name(name: object) -> str:
    """Return a crawl's name, which becomes part of each key. Raises InvalidOption."""
    if type(name) is not str or not _NAME.fullmatch(name):
        raise InvalidOption(
            f"must be a name of 1 to 100 letters, digits, dots, hyphens and underscores, got {name!r}",
            option="crawl",
        )
    return name


def crawl_key(crawl: str) -> str:
    """Return the key of the crawl's terms."""
    return f"polite:{{{crawl}}}:crawl"


def partition_prefix(crawl: str, partition: int) -> str:
    """Return what all keys of a partition begin with; the part in braces gives them one slot of a cluster."""
    return f"polite:{{{crawl}:{partition}}}:"


def _partitions(link: RedisLink, crawl: str, text: str) -> int:
    count = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else 0
    if not 1 <= count <= _MAX_PARTITIONS:
        raise StoreFailed(
            f"{link.name}: {crawl_key(crawl)} is damaged: {text[:20]!r} is no number of partitions from 1 to {_MAX_PARTITIONS}"
        )
    return count


@dataclass(frozen=True, slots=True)
class SharedStore:
    """An opened shared store. The one who opened it closes it, after all that uses `link`.

    Attributes:
        link: The connection.
        robots: Keeps robots.txt results.
        partitions: How many partitions a new crawl has there.
    """

    link: RedisLink
    robots: RedisStore
    partitions: int

    async def join(
        self, crawl: str, *, home: Home = "host", lease_s: float = LEASE_S, order: str | None = None
    ) -> int:
        """Begin a crawl, or join it; return how many partitions it has. May be called again with an order.

        Raises:
            InvalidOption: The crawl's name or lease is invalid, or the crawl has other terms.
            StoreFailed: The server is not reached, or has the crawl of a newer version, or a key of another program.
        """
        number("lease", lease_s, least=1.0, most=300.0)
        link, key = self.link, crawl_key(crawl_name(crawl))
        given = {"partitions": str(self.partitions), "home": home, "lease": f"{lease_s:g}"}
        if order is not None:
            given["order"] = order
        flat = [text for pair in given.items() for text in pair]
        reply = await reached(link, lambda: link.run(_SCRIPT, [key], SCHEMA, *flat))
        words = [each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in reply]
        found = dict(zip(words[::2], words[1::2], strict=True))
        if "schema" not in found:
            raise StoreFailed(
                f"{link.name}: {key} was not written by polite: choose another crawl, or another database"
            )
        if found["schema"] != str(SCHEMA):
            raise StoreFailed(
                f"{link.name}: crawl {crawl!r} was begun by a version of polite with schema {found['schema'][:20]}, "
                f"and this version has {SCHEMA}: use one version for all processes, or another crawl"
            )
        # Only the number of partitions may differ: that of the crawl holds, since a cluster may have grown since.
        for field, called in (("home", "home"), ("lease", "lease"), ("order", "scheduler's order")):
            if field in given and found[field] != given[field]:
                raise InvalidOption(
                    f"crawl {crawl!r} at {link.name} was begun with {called} {found[field]!r}, and this process has "
                    f"{given[field]!r}: use the same in all processes, or another crawl"
                )
        return _partitions(link, crawl, found["partitions"])

    async def close(self) -> None:
        """Write what robots.txt's store still has, and close the connection. May be called twice."""
        try:
            await self.robots.close()
        finally:
            await self.link.close()


async def open_shared(store: object, clock: Clock) -> SharedStore:
    """Connect to a shared store and check its server.

    Args:
        store: A URL, an Address, or a client of redis.asyncio for polite alone, whose retries are set to none. The client
            is not closed.

    Raises:
        InvalidOption: The URL is wrong, or the object is no client of redis.asyncio.
        StoreFailed: The server is not reached, refuses, or cannot hold a crawl.
    """
    match store:
        case str():
            link = RedisLink.to(Address.of(store))
        case Address():
            link = RedisLink.to(store)
        case _:
            link = RedisLink.of(store)
    try:
        partitions = await checked(link)
    except BaseException:
        # A cancellation too: its connections would stay open.
        await link.close()
        raise
    return SharedStore(link, RedisStore(link, clock), partitions)
