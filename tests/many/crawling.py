"""`python -m tests.many.crawling [FAULT ...] [--runs N]`: one crawl by several processes under each fault, and what sites saw.

The moments and lengths of the faults come from the world: a stop is "long" if it outlasts the lease. A run takes about 40 s.
"""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import redis

from polite.judge.verdict import ROBOTS, Request, Verdict
from tests.many.process import EMPTIED
from tests.many.proxy import TcpProxy
from tests.many.servers import ValkeyCluster, ValkeySentinel, ValkeyServer
from tests.many.world import World, judge, read_request

ROOT = Path(__file__).parents[2]
PROCESSES = 8
_LOOK_S = 0.05
# A crawl that takes longer than so many times the ideal, and so many seconds, hangs.
_HANGS, _HANGS_S = 4, 240.0
# Harm begins when this part of all pages has been requested.
_BEGIN = 0.3
_LOST_S = 1.5
_LONG = 1.7


@dataclass(slots=True)
class Outcome:
    """What came of one crawl.

    Attributes:
        hosts: What the log says about each host.
        codes: The exit code of each process; those that a fault ended are left out.
        calls: Calls of scripts, as the store counted them.
        errors: The last lines of standard error of processes that failed.
    """

    hosts: dict[int, Verdict]
    codes: list[int] = field(default_factory=list)
    hung: int = 0
    calls: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def times(self) -> list[float]:
        return sorted(request.at for each in self.hosts.values() for request in each.requests)

    @property
    def gaps(self) -> list[float]:
        return [gap for each in self.hosts.values() for gap in each.gaps]

    @property
    def short(self) -> list[str]:
        """Each gap that was too short, in words."""
        return [f"host {host}: {words}" for host, each in self.hosts.items() for words in each.short]

    @property
    def lost(self) -> int:
        return sum(len(each.missing) for each in self.hosts.values())

    @property
    def twice(self) -> int:
        """How many requests were for pages that had been requested before."""
        return sum(each.pages.total() - len(each.pages) for each in self.hosts.values())

    @property
    def robots(self) -> int:
        """The most requests for robots.txt that one host got."""
        return max(each.robots for each in self.hosts.values())

    def efficiency(self, world: World) -> float:
        """The ideal time divided by the real one, from the first request to the last."""
        return world.ideal_s / (self.times[-1] - self.times[0])

    @property
    def calls_per_fetch(self) -> float:
        return self.calls / len(self.times)


@contextmanager
def sites(world: World, log: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "tests.many.sites", world.written(), str(log)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


class Crawl:
    """`with Crawl(world, folder) as crawl:` servers and a store run; `start` starts processes, `outcome` judges.

    Attributes:
        processes: Those that run, by name.
        store: The store's server, or the master that is used first.
        cluster: The store, if it is a cluster.
    """

    def __init__(self, world: World, folder: Path, *, append_only: bool = True, masters: int = 0) -> None:
        self.world, self.folder = world, folder
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.cluster = ValkeyCluster(folder / "cluster", masters) if masters else None
        self.store = (
            self.cluster.nodes[0]
            if self.cluster
            else ValkeyServer(folder / "valkey", append_only=append_only)
        )
        self._log, self._stack = folder / "hits", ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._port = stack.enter_context(sites(self.world, self._log))
            stack.enter_context(closing((self.cluster or self.store).start()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        self._stack.close()

    def with_(self, part: AbstractContextManager[Any]) -> Any:
        """Keep a part, such as a proxy or another server, until the crawl is over."""
        return self._stack.enter_context(part)

    def proxy(self) -> TcpProxy:
        return self.with_(TcpProxy(self.store.port))

    def replica(self) -> ValkeyServer:
        """Return a second server; what it replicates is the caller's to say."""
        return self.with_(closing(ValkeyServer(self.folder / "replica", append_only=True).start()))

    def start(self, *names: str, way: TcpProxy | None = None, url: str | None = None) -> None:
        """Start processes. The store is reached by `way` or at `url`, if one is given."""
        url = url or (f"redis://127.0.0.1:{way.port}/0" if way else (self.cluster or self.store).url)
        for name in names:
            command = [sys.executable, "-P", "-m", "tests.many.process", self.world.written()]
            command += ["--port", str(self._port), "--name", name, "--store", url]
            with self._errors(name).open("a") as errors:
                streams = {"stdout": subprocess.DEVNULL, "stderr": errors, "text": True}
                there = {"cwd": ROOT, "env": os.environ | {"PYTHONPATH": str(ROOT)}}
                self.processes[name] = subprocess.Popen(command, **there, **streams)

    def _errors(self, name: str) -> Path:
        return self.folder / f"errors-{name}"

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def hits(self) -> list[Request]:
        text = self._log.read_text()
        return [read_request(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def begin(self, *names: str, way: TcpProxy | None = None, url: str | None = None) -> None:
        """Start processes. Wait until a part of all pages has been requested, and each process has requested something."""
        self.start(*names, way=way, url=url)

        def begun() -> bool:
            hits = self.hits()
            if sum(hit.path != ROBOTS for hit in hits) < _BEGIN * self.world.hosts * self.world.pages:
                return False
            # On a busy machine a process may take seconds to open; what befalls the store then is an error at the start.
            return self.processes.keys() <= {hit.agent for hit in hits}

        self._wait(begun)

    def _wait(self, true: Callable[[], bool]) -> None:
        until = time.monotonic() + _HANGS * self.world.ideal_s + _HANGS_S
        while not true() and time.monotonic() < until:
            if all(each.poll() is not None for each in self.processes.values()):
                return
            time.sleep(_LOOK_S)

    def outcome(self) -> Outcome:
        """Wait until all processes have ended, and judge."""
        self._wait(lambda: False)
        codes = {name: each.poll() for name, each in self.processes.items()}
        outcome = Outcome(
            judge(self.world, self.hits()),
            [code for code in codes.values() if code is not None],
            sum(code is None for code in codes.values()),
            errors=[
                f"{name}: {' | '.join(self._errors(name).read_text(errors='replace').splitlines()[-6:])}"
                for name, code in codes.items()
                if code != 0
            ],
        )
        for server in self.cluster.nodes if self.cluster else [self.store]:
            with contextlib.suppress(redis.RedisError):
                stats = server.client.info("commandstats")
                outcome.calls += sum(
                    int(stats[name]["calls"]) for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats
                )
        return outcome


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and what it may cost.

    Attributes:
        run: Starts the processes of these names, and harms.
        empties: Whether the store loses everything: then each process must end with StoreEmptied.
        crashes: Whether processes die, or are held up for longer than a lease: pages in flight may be fetched twice.
        forgets: Whether acknowledged writes are lost: pages, and a robots.txt, may be fetched twice.
        masters: Masters of the cluster that is the store; 0: one server.
    """

    name: str
    run: Callable[[Crawl, list[str]], None]
    empties: bool = False
    crashes: bool = False
    forgets: bool = False
    masters: int = 0


FAULTS: dict[str, Fault] = {}
_Run = Callable[[Crawl, list[str]], None]


def _fault(**given: Any) -> Callable[[_Run], _Run]:
    def named(run: _Run) -> _Run:
        name = run.__name__.replace("_", "-")
        FAULTS[name] = Fault(name, run, **given)
        return run

    return named


@_fault()
def none(crawl: Crawl, names: list[str]) -> None:
    crawl.start(*names)


@_fault(masters=1)
def four_partitions(crawl: Crawl, names: list[str]) -> None:
    crawl.start(*names)


@_fault(crashes=True)
def sigkill(crawl: Crawl, names: list[str]) -> None:
    """One process is killed, and does not come again."""
    crawl.begin(*names)
    crawl.kill(names[0])


@_fault(crashes=True)
def sigstop_long(crawl: Crawl, names: list[str]) -> None:
    """One process is stopped for longer than its lease, and goes on when its homes belong to others."""
    crawl.begin(*names)
    crawl.processes[names[0]].send_signal(signal.SIGSTOP)
    time.sleep(_LONG * crawl.world.lease_s)
    crawl.processes[names[0]].send_signal(signal.SIGCONT)


@_fault(crashes=True)
def partition(crawl: Crawl, names: list[str]) -> None:
    """One process does not reach the store for longer than a lease; its connection stays open."""
    way = crawl.proxy()
    crawl.start(names[0], way=way)
    crawl.begin(*names[1:])
    way.stop_passing()
    time.sleep(_LONG * crawl.world.lease_s)
    way.pass_again()


@_fault()
def store_paused(crawl: Crawl, names: list[str]) -> None:
    crawl.begin(*names)
    crawl.store.pause()
    time.sleep(_LONG * crawl.world.lease_s)
    crawl.store.resume()


@_fault()
def store_restarted(crawl: Crawl, names: list[str]) -> None:
    """The store is killed, and started again with its append-only file."""
    crawl.begin(*names)
    crawl.store.restart()


@_fault(empties=True)
def store_restarted_empty(crawl: Crawl, names: list[str]) -> None:
    """The store is killed, and started again with nothing."""
    crawl.begin(*names)
    crawl.store.restart()


@_fault(forgets=True)
def failover(crawl: Crawl, names: list[str]) -> None:
    """The master dies, and a replica takes over that misses the last writes. The address stays."""
    way, copying, replica = crawl.proxy(), crawl.proxy(), crawl.replica()
    replica.client.replicaof("127.0.0.1", str(copying.port))
    crawl.begin(*names, way=way)
    copying.stop_passing()
    time.sleep(_LOST_S)
    crawl.store.kill()
    copying.lead_to(None)
    replica.replica_of(None)
    way.lead_to(replica.port)


@_fault(forgets=True)
def sentinel_failover(crawl: Crawl, names: list[str]) -> None:
    """The master dies, and a Sentinel makes its replica the master."""
    crawl.replica().replica_of(crawl.store)
    sentinel = crawl.with_(closing(ValkeySentinel(crawl.folder / "sentinel", crawl.store).start()))
    crawl.begin(*names, url=sentinel.url)
    crawl.store.kill()


@_fault(masters=2)
def slot_moved(crawl: Crawl, names: list[str]) -> None:
    crawl.begin(*names)
    cluster = crawl.cluster
    assert cluster is not None
    for key in {each for node in cluster.nodes for each in node.client.scan_iter("polite:{many:*}:m")}:
        source = cluster.of(key)
        cluster.move(key, to=next(each for each in cluster.nodes if each is not source))


def wrong(fault: Fault, outcome: Outcome) -> list[str]:
    found = [f"{len(outcome.short)} short gaps, such as {outcome.short[0]}"] if outcome.short else []
    for each in outcome.hosts.values():
        found += [f"{request} came before the rules" for request in each.before_robots]
        found += [f"{path} is forbidden" for path in [*each.disallowed, *each.unlinked]]
    if outcome.robots > 1 + fault.forgets:
        found.append(f"{outcome.robots} requests for one robots.txt")
    if outcome.twice and not (fault.crashes or fault.forgets):
        found.append(f"{outcome.twice} pages fetched twice")
    if set(outcome.codes) != {EMPTIED if fault.empties else 0} or outcome.hung:
        found += [f"exit codes {outcome.codes}, {outcome.hung} hung", *outcome.errors]
    if outcome.lost and not fault.empties:
        found.append(f"{outcome.lost} pages lost")
    return found


def run(fault: Fault, world: World, processes: int = PROCESSES) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="polite-many-") as folder:
        world = replace(world, network=77 + os.getpid() % 100)
        crawl = Crawl(world, Path(folder), append_only=not fault.empties, masters=fault.masters)
        with crawl:
            fault.run(crawl, [str(number) for number in range(processes)])
            return crawl.outcome()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev soak many", description=__doc__)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"of {', '.join(FAULTS)}; default: all")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.faults if name not in FAULTS]:
        parser.error(f"no fault named {', '.join(unknown)}; there are: {', '.join(FAULTS)}")
    found = 0
    print("fault                  requests  short of gaps  worst    calls/fetch  silence  efficiency")
    for name in [each for each in options.faults or FAULTS for _ in range(options.runs)]:
        outcome = run(FAULTS[name], World())
        offences, gaps = wrong(FAULTS[name], outcome), outcome.gaps
        worst = max((short.by_s for each in outcome.hosts.values() for short in each.too_early), default=0.0)
        print(
            f"{name:22} {len(outcome.times):8} {len(outcome.short):6} of {len(gaps):5} {1e3 * worst:4.0f} ms "
            f"{outcome.calls_per_fetch:12.2f} {max(gaps):6.2f} s {outcome.efficiency(World()):11.2f}",
            *(f"    wrong: {each}" for each in offences),
            sep="\n",
            flush=True,
        )
        found += len(offences)
    print(f"{found} things wrong" if found else "nothing wrong")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
