"""The operator's orders of one gate: given, kept in its store, looked for there, and in force at once."""

import asyncio
import getpass
import math
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar
from weakref import WeakMethod

from polite.errors import GateClosed, InvalidOption, Overloaded, StoreFailed
from polite.events import OperatorActed
from polite.gate.single_flight import start_later
from polite.log import fields, log
from polite.options import number
from polite.orders import MOST_ORDERS, Kind, Order, Orders, pattern_of
from polite.origin import Origin
from polite.ports import Clock, Listener, Timer

T = TypeVar("T")

# A file is looked at again so long after the last look, and only if something is requested; a server, always (seconds).
_LOOK_S, _ASK_S = 1.0, 2.0
# The longest timer, since the wall clock may be set; and the longest time for which an order may be given (seconds).
_TIMER_S, _LONGEST_S = 60.0, 10 * 366 * 86_400.0
# For how long an order to drop stands where tasks cannot be told from those that are put later (seconds).
DROP_S = 3_600.0


def who() -> str:
    """Return the user and the host of this process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


class OrderStore(Protocol):
    """Keeps orders for all processes that use it, and for those to come.

    Attributes:
        at_once: Whether `look` tells all; otherwise `load` is to be awaited now and then.
    """

    at_once: bool

    def look(self) -> list[Order] | None:
        """Return the orders that stand; None if they are those of the last look, or cannot be told at once. Raises StoreFailed."""

    async def load(self) -> list[Order]:
        """Return the orders that stand. Raises StoreFailed."""

    async def keep(self, order: Order) -> None:
        """Keep an order, in place of one of its kind and pattern. Raises StoreFailed."""

    async def forget(self, order: Order) -> None:
        """Forget the order of this kind and pattern. Raises StoreFailed."""


class Operator:
    """Holds the orders that stand, and has them kept.

    Attributes:
        orders: The orders that stand now. Read it only.
        stale: Whether the store is to be looked at before the next decision (`look`).
    """

    def __init__(self, clock: Clock, tell: Listener) -> None:
        self.orders: Orders = Orders()
        self.stale: bool = False
        self._clock = clock
        self._tell = tell
        self._store: OrderStore | None = None
        self._watching: list[Callable[[], Callable[[list[Order]], object] | None]] = []
        self._waiting: set[asyncio.Future[None]] = set()
        self._writing: set[asyncio.Task[None]] = set()
        self._turn_to_write = asyncio.Lock()
        self._writes = 0
        # What this process has ordered and the store does not say yet, by kind and pattern; None for a release.
        self._unsaid: dict[tuple[Kind, str], Order | None] = {}
        self._timers: dict[str, Timer] = {}
        self._asking: asyncio.Task[None] | None = None
        self._closed = False

    async def use(self, store: OrderStore) -> None:
        """Keep the orders in a store, and obey those that it has. Raises StoreFailed."""
        self._store = store
        self._receive(await store.load())
        self._looked()

    @property
    def kept(self) -> bool:
        """Whether a store keeps the orders."""
        return self._store is not None

    def watch(self, changed: Callable[[list[Order]], object]) -> None:
        """Call a bound method with the orders that begin or end, whenever some do. Its object is held weakly."""
        self._watching.append(WeakMethod(changed))

    # Orders are given.

    def give(self, order: Order) -> Awaitable[Order]:
        """Give an order: in force when this returns. What it returns can be awaited, until the store has the order.

        Raises:
            Overloaded: At once: too many orders stand.
            StoreFailed: When it is awaited: the store did not take it. It is in force in this process all the same.
        """
        self.look()
        if len(self.orders.rows) >= MOST_ORDERS:
            raise Overloaded(f"{MOST_ORDERS} orders stand already: release some")
        key = order.kind, order.pattern
        self._put({**self.orders.rows, key: order}, by=order.by, because=order.because)
        return self._keep({key: order}, lambda store: store.keep(order), order)

    def order(
        self,
        kind: Kind,
        pattern: str,
        *,
        because: str,
        by: str | None = None,
        until: float | datetime | None = None,
        for_: float | None = None,
    ) -> Order:
        """Return an order that is not given yet. Raises InvalidOption."""
        now = self._clock.wall()
        by, until = who() if by is None else by, _end(now, until, for_)
        return Order(kind=kind, pattern=pattern_of(pattern), because=because, by=by, at=now, until=until)

    def release(
        self, pattern: str, *, because: str = "released", by: str | None = None
    ) -> Awaitable[list[Order]]:
        """End the orders of a pattern. In force when this returns, and kept when what it returns was awaited.

        Raises:
            InvalidOption: At once: no order has this pattern. The message names those that stand.
            StoreFailed: When it is awaited.
        """
        name = pattern_of(pattern)
        self.look()
        ended = {key: order for key, order in self.orders.rows.items() if key[1] == name}
        if not ended:
            standing = ", ".join(sorted({each for _, each in self.orders.rows})[:10]) or "none"
            raise InvalidOption(f"no order stands for {name}; patterns with orders: {standing}")
        left = {key: order for key, order in self.orders.rows.items() if key not in ended}
        self._put(left, by=who() if by is None else by, because=because)

        async def forget(store: OrderStore) -> None:
            for order in ended.values():
                await store.forget(order)

        return self._keep(dict.fromkeys(ended), forget, list(ended.values()))

    # Requests wait.

    async def lifted(self, origin: Origin, path: str | None, most: int) -> bool:
        """Wait until no order holds the URL (without a path: all of the origin). Return whether that took a wait.

        Raises:
            GateClosed: The gate was closed meanwhile.
            Overloaded: `most` requests wait already.
        """
        waited = False
        while self.orders.holds(origin, path) is not None:
            if len(self._waiting) >= most:
                said = f"{most} requests wait for the end of an order already: PacingPolicy.max_waiting"
                raise Overloaded(said)
            if self._closed:
                raise GateClosed("the gate is closed: no more turns are given")
            waited = True
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await waiter
            finally:
                self._waiting.discard(waiter)
        return waited

    def look(self) -> None:
        """Take in what other processes have ordered, as far as the store can tell at once. Call it if `stale`."""
        if self._store is None:
            return
        try:
            found = self._store.look()
        except StoreFailed as error:
            log.warning("orders cannot be read: %s", error, extra=fields("orders_unread", error=error))
            found = None
        if found is not None:
            self._receive(found)
        self._looked()

    async def close(self) -> None:
        """Finish the writes; what waits gets GateClosed. May be called twice."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for waiter in [each for each in self._waiting if not each.done()]:
            closed = GateClosed("the gate was closed while this request waited for the end of an order")
            waiter.set_exception(closed)
        if self._asking is not None:
            self._asking.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)

    # In between.

    def _put(self, rows: dict[tuple[Kind, str], Order], *, by: str = "", because: str = "") -> None:
        """Have these orders stand, and tell all that must know."""
        now = self._clock.wall()
        standing = [each for each in rows.values() if each.until is None or each.until > now]
        changed = self.orders.replace(standing)
        self._arm("end", self.orders.ends_at - now, lambda: self._put(self.orders.rows))
        if not changed:
            return
        for watcher in list(self._watching):
            if (call := watcher()) is None:
                self._watching.remove(watcher)
            else:
                call(changed)
        for waiter in [each for each in self._waiting if not each.done()]:
            waiter.set_result(None)
        for order in changed:
            key = order.kind, order.pattern
            if self.orders.rows.get(key) == order:
                self._tell(OperatorActed(order.kind, order.pattern, order.by, order.because, order.until))
            elif key not in self.orders.rows:
                why = by or "another process", because or "released"
                if order.until is not None and order.until <= now:
                    why = "its time", "its time is over"
                self._tell(OperatorActed("release", order.pattern, *why))

    def _receive(self, found: list[Order]) -> None:
        """Obey what the store says, and what it does not say yet."""
        rows = {(each.kind, each.pattern): each for each in found}
        for key, order in list(self._unsaid.items()):
            if order is None:
                rows.pop(key, None)
            elif self._writing or key not in rows or rows[key].at < order.at:
                rows[key] = order
            else:
                # It was said, or another process has given a newer one.
                del self._unsaid[key]
        self._put(rows)

    def _keep(
        self,
        unsaid: "dict[tuple[Kind, str], Order] | dict[tuple[Kind, str], None]",
        write: Callable[[OrderStore], Awaitable[None]],
        result: T,
    ) -> Awaitable[T]:
        told: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        store = self._store
        if store is None:
            told.set_result(result)
            return told
        self._unsaid |= unsaid
        self._writes += 1

        async def keep() -> None:
            try:
                # One after the other: a release must not come before its order.
                async with self._turn_to_write:
                    await write(store)
            except StoreFailed as error:
                # What was released stands again, if the store says so: nobody else could release it.
                for key in [
                    key
                    for key, order in unsaid.items()
                    if order is None and self._unsaid.get(key, order) is None
                ]:
                    self._unsaid.pop(key, None)
                extra = fields("order_unsaved", error=error)
                log.error("an order is in force in this process alone: %s", error, extra=extra)  # noqa: TRY400
                if not told.done():
                    told.set_exception(error)
                    told.exception()  # it was logged
                return
            for key, order in unsaid.items():
                if self._unsaid.get(key, order) == order:
                    self._unsaid.pop(key, None)
            if not told.done():
                told.set_result(result)

        task = start_later(keep)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return told

    def _looked(self) -> None:
        """The store is to be looked at again in a while."""
        if self._store is None or self._closed:
            return
        if self._store.at_once:
            self.stale = False
            self._arm("look", _LOOK_S, self._grow_stale)
        else:
            self._arm("look", _ASK_S, self._ask)

    def _grow_stale(self) -> None:
        self.stale = True
        if self.orders.rows or self._waiting:
            # A release must be noticed, though nothing else may be requested.
            self.look()

    def _ask(self) -> None:
        self._asking = start_later(self._load)

    async def _load(self) -> None:
        writes = self._writes
        try:
            found = await self._store.load()  # type: ignore[union-attr]
        except StoreFailed as error:
            # While the server is away, no home is renewed, and so nothing is granted for long.
            log.debug("orders cannot be read: %s", error)
        else:
            if writes == self._writes and not self._writing:
                self._receive(found)
        finally:
            self._looked()

    def _arm(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        if (before := self._timers.pop(name, None)) is not None:
            before.cancel()
        if not self._closed and seconds < math.inf:
            at = self._clock.monotonic() + min(max(seconds, 0.0), _TIMER_S)
            self._timers[name] = self._clock.call_at(at, call)


def _end(now: float, until: float | datetime | None, for_: float | None) -> float | None:
    """Return the end of an order (Unix time). Raises InvalidOption."""
    if until is not None and for_ is not None:
        raise InvalidOption("until and for_ exclude each other: give one")
    if for_ is not None:
        return now + number("for_", for_, least=1.0, most=_LONGEST_S)
    if isinstance(until, datetime):
        if until.utcoffset() is None:
            raise InvalidOption(f"until must be a datetime with a time zone, got {until!r}")
        until = until.timestamp()
    if until is not None and not now < number("until", until, least=0.0, most=now + _LONGEST_S):
        raise InvalidOption(f"until must be later than now ({now:.0f}, Unix time), got {until:g}")
    return until
