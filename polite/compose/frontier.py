"""Builds a frontier: in memory, in a file, or on a shared store."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from polite.compose.gate import opening
from polite.compose.shared import is_shared, join_frontier, memberships, refuse_mistyped
from polite.errors import InvalidOption
from polite.frontier.checked_scheduler import CheckedScheduler
from polite.frontier.dispatcher import Dispatcher
from polite.frontier.frontier import Frontier, FrontierOptions, in_memory
from polite.frontier.in_flight import OnEnd, require_plain
from polite.frontier.task_store import Limits, TaskStore
from polite.gate.gate import Gate
from polite.log import fields, log
from polite.options import boolean, instance
from polite.ports import Scheduler
from polite.schedulers import ORDERS, Fifo, FileOrder

if TYPE_CHECKING:
    from redis.asyncio import Redis, RedisCluster

    from polite.stores.redis.address import Address


@opening
async def open_frontier(
    gate: Gate,
    *,
    store: "Redis | RedisCluster | Address | str | os.PathLike[str] | None" = None,
    crawl: str | None = None,
    lease: float | None = None,
    scheduler: Scheduler | None = None,
    on_end: OnEnd | None = None,
    wide_fingerprints: bool = False,
    **options: Unpack[FrontierOptions],
) -> AsyncIterator[Frontier]:
    """Open a frontier, the queue of a crawl, and stop it when the block exits.

    Example:
        async with polite.open_frontier(gate, store="queue.sqlite") as frontier:
            await frontier.put("https://example.com/")

    Args:
        gate: The gate that grants the turns.
        store: A file that keeps the tasks, so that a crawl that ends or is killed continues when the file is opened again.
            A file serves one frontier at a time, and no gate. Or the shared store of many processes, which crawl together: a URL
            such as `redis://example.com/0`, or a client of redis.asyncio for polite alone. By default tasks are kept in memory.
            In a store, a task's payload must be a JSON value.
        crawl: The name of the crawl on a shared store, "default" by default: processes of one name share tasks and delays. It
            may be given without `store` if the gate has a shared one.
        lease: How long the shared store waits for a process that ended without a word, 1 to 300 seconds; 15 by default. The same
            for all processes of a crawl.
        scheduler: Decides the order of tasks; `schedulers.Fifo()` by default. On a shared store it does so within this process.
        on_end: Called for each task that ended in this process; see Frontier.
        wide_fingerprints: Whether a new file remembers URLs by 128 bits instead of 64, for some octets more of each. With 64, a
            new URL among n is taken for a known one, and not crawled, with a chance of n to 2**64.
        **options: Options of Frontier.

    Raises:
        InvalidOption: An option has the wrong type or value, or a shared crawl has other terms.
        StoreFailed: The file cannot be used, or the shared store's server is not reached or refuses. As the block is left: the last
            changes could not be written, and nothing else has raised it.
    """
    instance("frontier: gate", gate, Gate)
    shared = crawl is not None or is_shared(store)
    if lease is not None and not shared:
        raise InvalidOption(f'lease={lease!r} needs a shared store, such as store="redis://example.com/0"')
    if boolean("wide_fingerprints", wide_fingerprints) and (shared or store is None):
        raise InvalidOption("wide_fingerprints=True needs a file, such as store='queue.sqlite'")
    if unknown := options.keys() - FrontierOptions.__annotations__.keys():
        raise TypeError(f"open_frontier: {', '.join(sorted(unknown))}: no such option")
    # What is refused is refused before a shared crawl is joined.
    checked = CheckedScheduler(Fifo() if scheduler is None else scheduler)
    limits, order = Limits(**options), "fifo" if store is None and crawl is None else _order(scheduler)
    require_plain(on_end)
    if store is None and crawl is None:
        if (joined := memberships.get(gate)) is not None:
            log.warning(
                "the gate shares its delays with other processes, but this frontier keeps its tasks to itself: "
                "crawl=%r shares them",
                joined.crawl,
                extra=fields("frontier_not_shared"),
            )
        keep: Callable[[Dispatcher], TaskStore] = in_memory
    elif shared:
        keep = await _on_server(gate, limits, store, crawl, order, lease)
    else:
        keep = _in_file(store, limits, order, wide=wide_fingerprints)
    dispatcher = Dispatcher(gate.services, checked, limits, on_end, keep)
    try:
        await dispatcher.store.begin()
        frontier = Frontier.of(gate, dispatcher)
        try:
            yield frontier
        finally:
            frontier.stop()
    finally:
        await dispatcher.close()


def _in_file(
    store: object, limits: Limits, order: FileOrder, *, wide: bool
) -> Callable[[Dispatcher], TaskStore]:
    name = os.fspath(store) if isinstance(store, os.PathLike) else store
    if isinstance(store, str):
        refuse_mistyped(store)
    if type(name) is not str or not name or name == ":memory:" or "\0" in name:
        raise InvalidOption(f"store={store!r}: the name of a file is needed; None is for memory")
    # Imported here: a crawler that keeps nothing loads no database.
    from polite.frontier.durable.active_origins import TASKS_PER_ORIGIN
    from polite.frontier.durable.store import DurableTaskStore
    from polite.frontier.sqlite.queue_file import QueueFile, SqliteBackend

    file = QueueFile(
        Path(name), order=order, tasks_per_origin=TASKS_PER_ORIGIN, max_done=limits.max_done, wide=wide
    )
    return lambda dispatcher: DurableTaskStore(dispatcher, SqliteBackend(file), order)


async def _on_server(
    gate: Gate, limits: Limits, store: object, crawl: str | None, order: FileOrder, lease: float | None
) -> Callable[[Dispatcher], TaskStore]:
    found = await join_frontier(gate, store, crawl, lease_s=lease, order=order)
    from polite.frontier.durable.store import DurableTaskStore
    from polite.frontier.redis.backend import RedisBackend

    key = None if order == "fifo" else ORDERS[order]
    names, session = found.pacer.names, found.session
    max_done = max(1, limits.max_done // len(session.homes.partitions))
    session.serve(keyed=key is not None, max_tries=limits.max_tries, max_done=max_done)

    def keep(dispatcher: Dispatcher) -> DurableTaskStore:
        progress = dispatcher.progress
        backend = RedisBackend(
            session,
            gate.services.clock,
            lambda target: names.of_tasks(target.origin),
            key,
            busy=lambda: bool(progress.workers.idle or progress.in_flight),
            is_fetching=gate.services.origins.is_fetching,
        )
        return DurableTaskStore(dispatcher, backend, order)

    return keep


def _order(scheduler: Scheduler | None) -> FileOrder:
    order: FileOrder = getattr(scheduler, "order", "fifo")
    if order not in tuple(ORDERS):
        raise InvalidOption(f"{type(scheduler).__name__}.order={order!r}: needs one of {', '.join(ORDERS)}")
    return order
