"""Checks of a server when it is opened: what it is, how old, and whether it keeps what it is told."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from polite.errors import StoreFailed
from polite.log import fields
from polite.stores.redis.link import RedisLink
from polite.stores.redis.step import Unreached

log: logging.Logger = logging.getLogger("polite")

# Scripts reach keys that they compute, and read TIME before they write: both are sure from 7.0 on.
_LEAST = (7, 0)
# Servers that speak the protocol, but run scripts differently. Each has its own version beside `redis_version`.
_OTHERS = {"dragonfly_version": "Dragonfly", "kvrocks_version": "Kvrocks", "garnet_version": "Garnet"}
_CHANGE_POLICY = "CONFIG SET maxmemory-policy noeviction"
# While a crawl is opened: seconds in which a slow server is asked again, and between two attempts.
SLOW_S, _PAUSE_S = 10.0, 0.2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says of itself.

    Attributes:
        masters: How many masters there are; 1 without a cluster.
        is_cluster: Whether it is a cluster.
        version: "Valkey 9.1.0".
    """

    masters: int
    is_cluster: bool
    version: str


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
                raise StoreFailed(
                    f"{link.name}: the server is not reached: {error}{_hint(link, str(error))}"
                ) from error
        await asyncio.sleep(_PAUSE_S)


async def checked(link: RedisLink) -> Server:
    """Check the server behind a link, in a cluster each master.

    Raises:
        StoreFailed: It is not reached, or cannot hold a crawl. The message says what to change.
    """
    masters = await reached(link, link.masters)
    versions = [await reached(link, partial(_check_node, link, node)) for node in masters]
    return Server(len(masters), link.is_cluster, versions[0])


async def _check_node(link: RedisLink, node: Any) -> str:  # noqa: ANN401 - of redis-py
    info: dict[str, Any] = {}
    for section in ("server", "memory", "replication", "persistence", "cluster"):
        told = await link.call("INFO", section, node=node)
        info |= told if isinstance(told, dict) else {}
    version = _version(link, info)
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
    return version


def _version(link: RedisLink, info: dict[str, Any]) -> str:
    for key, name in _OTHERS.items():
        if key in info:
            raise StoreFailed(
                f"{link.name}: this is {name}, and a shared crawl needs Redis or Valkey 7.0 or later"
            )
    number = str(info.get("valkey_version") or info.get("redis_version") or "")
    name = "Valkey" if "valkey_version" in info else "Redis"
    parts = tuple(int(part) for part in number.split(".")[:2] if part.isdecimal())
    if not parts:
        raise StoreFailed(f"{link.name}: INFO names no version: this is neither Redis nor Valkey")
    if parts < _LEAST:
        raise StoreFailed(f"{link.name}: this is {name} {number}, and a shared crawl needs 7.0 or later")
    return f"{name} {number}"


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
