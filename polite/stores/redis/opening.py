"""Opens a shared store: the one way from an option to a checked server. Importing it needs the package `redis`, or it raises."""

from dataclasses import dataclass
from typing import Literal

from polite.errors import InvalidOption
from polite.options import number
from polite.ports import Clock
from polite.stores.redis.address import Address

try:
    from polite.stores.redis.crawl import Terms, crawl_name, joined
    from polite.stores.redis.link import RedisLink
    from polite.stores.redis.robots import RedisStore
    from polite.stores.redis.server import Server, checked
except ImportError as _error:
    # Said here once, for all who import this file when a store is opened.
    raise InvalidOption(
        "a shared store needs the package redis: pip install 'polite-crawl[redis]'"
    ) from _error

# Partitions of a new crawl: a cluster spreads them over its masters.
_PER_MASTER = 4
LEASE_S = 15.0

Home = Literal["host", "domain", "address", "custom"]


@dataclass(frozen=True, slots=True)
class SharedStore:
    """An opened shared store. The one who opened it closes it, after all that uses `link`.

    Attributes:
        link: The connection.
        robots: Keeps robots.txt results.
        server: What the server is.
    """

    link: RedisLink
    robots: RedisStore
    server: Server

    async def join(
        self, crawl: str, *, home: Home = "host", lease_s: float = LEASE_S, order: str | None = None
    ) -> Terms:
        """Begin a crawl, or join it; return its terms, of which `partitions` counts. May be called again with an order.

        Raises:
            InvalidOption: The crawl's name or lease is invalid, or the crawl has other terms.
            StoreFailed: The server is not reached, or has the crawl of a newer version, or a key of another program.
        """
        number("lease", lease_s, least=1.0, most=300.0)
        partitions = _PER_MASTER * self.server.masters if self.server.is_cluster else 1
        return await joined(self.link, crawl_name(crawl), Terms(partitions, home, lease_s, order))

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
        server = await checked(link)
    except BaseException:
        # A cancellation too: its connections would stay open.
        await link.close()
        raise
    return SharedStore(link, RedisStore(link, clock), server)
