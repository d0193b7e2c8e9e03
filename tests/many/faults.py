"""What befalls a shared crawl: each fault starts the processes, and does its harm while they crawl.

The moments and lengths come from the world: a stop is "long" if it outlasts the lease.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from tests.many.running import Crawl, Outcome
from tests.many.servers import ValkeySentinel

# Harm begins when this part of all pages has been requested.
_BEGIN = 0.3
_LOST_S = 1.5
_LONG, _SHORT = 1.7, 0.5


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and what it may cost.

    Attributes:
        run: Starts the processes of these names, and harms.
        empties: Whether the store loses everything: then each process must end with StoreEmptied.
        crashes: Whether processes die, or are held up for longer than a lease: pages in flight may be fetched twice.
        forgets: Whether acknowledged writes are lost: pages, and a robots.txt, may be fetched twice.
        masters: Masters of the cluster that is the store; 0: one server.
        options: Options of Crawl.
    """

    name: str
    run: Callable[[Crawl, list[str]], None]
    empties: bool = False
    crashes: bool = False
    forgets: bool = False
    append_only: bool = True
    masters: int = 0
    late: bool = False
    options: tuple[str, ...] = ()


FAULTS: dict[str, Fault] = {}


def _fault(
    **given: object,
) -> Callable[[Callable[[Crawl, list[str]], None]], Callable[[Crawl, list[str]], None]]:
    def named(run: Callable[[Crawl, list[str]], None]) -> Callable[[Crawl, list[str]], None]:
        name = run.__name__.replace("_", "-")
        FAULTS[name] = Fault(name, run, **given)  # type: ignore[arg-type]
        return run

    return named


@_fault()
def none(crawl: Crawl, names: list[str]) -> None:
    """Nothing happens."""
    crawl.start(*names)


@_fault(crashes=True)
def sigkill(crawl: Crawl, names: list[str]) -> None:
    """One process is killed, and does not come again."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.kill(names[0])


@_fault()
def sigstop_short(crawl: Crawl, names: list[str]) -> None:
    """One process is stopped for less than its lease."""
    _stop(crawl, names, _SHORT * crawl.world.lease_s)


@_fault(crashes=True)
def sigstop_long(crawl: Crawl, names: list[str]) -> None:
    """One process is stopped for longer than its lease, and goes on when its homes belong to others."""
    _stop(crawl, names, _LONG * crawl.world.lease_s)


def _stop(crawl: Crawl, names: list[str], seconds: float) -> None:
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.stop(names[0])
    time.sleep(seconds)
    crawl.resume(names[0])


@_fault(crashes=True)
def sigstop_over_restart(crawl: Crawl, names: list[str]) -> None:
    """One process is stopped for longer than its lease, and the store restarts before it goes on."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.stop(names[0])
    time.sleep(_LONG * crawl.world.lease_s)
    crawl.store.restart()
    crawl.resume(names[0])


@_fault()
def store_paused(crawl: Crawl, names: list[str]) -> None:
    """The store answers nothing for longer than a lease."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.store.pause()
    time.sleep(_LONG * crawl.world.lease_s)
    crawl.store.resume()


@_fault()
def store_restarted(crawl: Crawl, names: list[str]) -> None:
    """The store is killed, and started again with its append-only file."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.store.restart()


@_fault(empties=True, append_only=False)
def store_restarted_empty(crawl: Crawl, names: list[str]) -> None:
    """The store is killed, and started again with nothing."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.store.restart()


@_fault(empties=True)
def flushall(crawl: Crawl, names: list[str]) -> None:
    """Somebody empties the store."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.store.client.flushall()


@_fault(forgets=True)
def failover(crawl: Crawl, names: list[str]) -> None:
    """The master dies, and a replica takes over that misses the last writes. The address stays."""
    with _replicated(crawl, names) as stop_copying:
        crawl.wait_for(_BEGIN)
        stop_copying()
        time.sleep(_LOST_S)


@_fault(forgets=True)
def sentinel_failover(crawl: Crawl, names: list[str]) -> None:
    """The master dies, and a Sentinel makes its replica the master."""
    replica = crawl.replica()
    replica.replica_of(crawl.store)
    sentinel = crawl.with_(closing(ValkeySentinel(crawl.folder / "sentinel", crawl.store).start()))
    crawl.start(*names, url=sentinel.url)
    crawl.wait_for(_BEGIN)
    crawl.store.kill()


@_fault(crashes=True, forgets=True)
def sigkill_and_failover(crawl: Crawl, names: list[str]) -> None:
    """One process is killed, others take its homes, and the replica that takes over does not know of it."""
    lease_s = crawl.world.lease_s
    with _replicated(crawl, names) as stop_copying:
        crawl.wait_for(_BEGIN)
        crawl.kill(names[0])
        time.sleep(0.7 * lease_s)
        stop_copying()
        time.sleep(0.6 * lease_s)


@contextmanager
def _replicated(crawl: Crawl, names: list[str]) -> Iterator[Callable[[], None]]:
    """Start a replica and the processes. After the block, the master is killed and the replica takes over."""
    way, replica = crawl.proxy(), crawl.replica()
    copying = crawl.proxy()
    replica.client.replicaof("127.0.0.1", str(copying.port))
    crawl.start(*names, way=way)
    yield copying.stop_passing
    crawl.store.kill()
    copying.lead_to(None)
    replica.replica_of(None)
    way.lead_to(replica.port)


@_fault(crashes=True)
def partition(crawl: Crawl, names: list[str]) -> None:
    """One process does not reach the store for longer than a lease; its connection stays open."""
    way = crawl.proxy()
    crawl.start(names[0], way=way)
    crawl.start(*names[1:])
    crawl.wait_for(_BEGIN)
    way.stop_passing()
    time.sleep(_LONG * crawl.world.lease_s)
    way.pass_again()


@_fault(masters=2)
def slot_moved(crawl: Crawl, names: list[str]) -> None:
    """The slots of all partitions move from one master of a cluster to the other."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    for key in _partitions(crawl):
        source = crawl.cluster.of(key)
        crawl.cluster.move(key, to=next(each for each in crawl.cluster.nodes if each is not source))


def _partitions(crawl: Crawl) -> list[str]:
    keys = (
        key for node in crawl.cluster.nodes for key in node.client.scan_iter("polite:{many:*}:m", count=1000)
    )
    return sorted(set(keys))


@_fault(crashes=True)
def all_restarted(crawl: Crawl, names: list[str]) -> None:
    """All processes are killed at once, and started again."""
    crawl.start(*names)
    crawl.wait_for(_BEGIN)
    crawl.kill(*names)
    crawl.start(*names)


@_fault()
def wall_clock_wrong(crawl: Crawl, names: list[str]) -> None:
    """One process's wall clock is an hour behind, another's an hour ahead."""
    crawl.start(names[0], options=["--wall", "-3600"])
    crawl.start(names[1], options=["--wall", "3600"])
    crawl.start(*names[2:])


@_fault(late=True, crashes=True)
def slow_connect(crawl: Crawl, names: list[str]) -> None:
    """Some hosts accept late, so that a process is stopped between grants and sending, for longer than its lease."""
    _stop(crawl, names, _LONG * crawl.world.lease_s)


@_fault(masters=1)
def four_partitions(crawl: Crawl, names: list[str]) -> None:
    """Nothing happens to the four partitions of a cluster's one master."""
    crawl.start(*names)


@_fault(masters=2)
def eight_partitions(crawl: Crawl, names: list[str]) -> None:
    """Nothing happens to the eight partitions of a cluster's two masters."""
    crawl.start(*names)


@_fault(options=("--alone",))
def nothing_shared(crawl: Crawl, names: list[str]) -> None:
    """A control: the same crawlers without a store."""
    crawl.start(*names)


def wrong(fault: Fault, outcome: Outcome) -> list[str]:
    """Return what a crawl under this fault may not show; empty if all is well."""
    verdict = outcome.verdict
    found = [f"{len(verdict.short)} short gaps, such as {verdict.short[0]}"] if verdict.short else []
    if verdict.before_rules or verdict.forbidden:
        found.append(f"{verdict.before_rules} pages before rules, {verdict.forbidden} forbidden")
    if verdict.robots > 1 + fault.forgets:
        found.append(f"{verdict.robots} requests for one robots.txt")
    if fault.empties:
        if not outcome.all_emptied:
            found.append(f"not all ended with StoreEmptied: {outcome.codes}, {outcome.hung} hung")
    else:
        if verdict.lost:
            found.append(f"{verdict.lost} pages lost")
        if not outcome.whole:
            found.append(f"exit codes {outcome.codes}, {outcome.hung} hung")
    if verdict.twice and not (fault.crashes or fault.forgets):
        found.append(f"{verdict.twice} pages fetched twice")
    return found + ([] if fault.empties else outcome.errors)
