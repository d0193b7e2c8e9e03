"""The operator's orders on a Redis or Valkey server: one hash for all crawls there."""

import json
from dataclasses import asdict

from polite.orders import Order
from polite.ports import Clock
from polite.stores.orders import KEPT_S, order_of
from polite.stores.redis.link import Patience, RedisLink

KEY = "polite:orders"


class RedisOrders:
    """An OrderStore on a server."""

    at_once = False

    def __init__(self, link: RedisLink, clock: Clock) -> None:
        self._link = link
        self._patience = Patience(link.name, clock)

    def look(self) -> None:
        """Nothing can be told at once."""

    async def load(self) -> list[Order]:
        """Return the orders. Raises StoreFailed."""
        found = await self._patience.wait_for(lambda: self._link.call("HVALS", KEY))
        return [order for text in found if (order := _order(text)) is not None]

    async def keep(self, order: Order) -> None:
        """Keep an order. Raises StoreFailed."""
        text = json.dumps(asdict(order))
        for old in await self.load():
            if old.until is not None and old.until < order.at - KEPT_S:
                await self.forget(old)
        await self._patience.wait_for(
            lambda: self._link.call("HSET", KEY, f"{order.kind} {order.pattern}", text)
        )

    async def forget(self, order: Order) -> None:
        """Forget an order. Raises StoreFailed."""
        await self._patience.wait_for(lambda: self._link.call("HDEL", KEY, f"{order.kind} {order.pattern}"))


def _order(text: str | bytes) -> Order | None:
    """Return an order; None for what is none, which is logged."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        row = None
    row = row if isinstance(row, dict) else {}
    return order_of(*map(row.get, ("kind", "pattern", "because", "by", "at", "until")))
