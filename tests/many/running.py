"""Runs one crawl by several processes, and hands its parts to a fault: servers, processes, the way to the store."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import redis

from docs.examples.demo.judge import ROBOTS, Request
from tests.many.judge import Verdict, judge, read_request
from tests.many.process import EMPTIED
from tests.many.proxy import TcpProxy
from tests.many.servers import ValkeyCluster, ValkeyServer
from tests.many.world import World

ROOT = Path(__file__).parents[2]
_LOOK_S = 0.05
# A crawl that takes longer than so many times the ideal, and so many seconds, hangs.
_HANGS, _HANGS_S = 4, 60.0


@dataclass(slots=True)
class Outcome:
    """What came of one crawl.

    Attributes:
        codes: The exit code of each process; those that a fault ended are left out.
        calls: Calls of step.lua and other scripts, as the store counted them.
        step_s: The mean time that the store spent in a call.
        slowest_s: The longest call.
        errors: The last lines of standard error of processes that failed.
    """

    verdict: Verdict
    took_s: float
    codes: list[int] = field(default_factory=list)
    hung: int = 0
    calls: int = 0
    step_s: float = 0.0
    slowest_s: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def calls_per_fetch(self) -> float:
        return self.calls / self.verdict.requests if self.verdict.requests else 0.0

    @property
    def all_emptied(self) -> bool:
        return bool(self.codes) and all(code == EMPTIED for code in self.codes)

    @property
    def whole(self) -> bool:
        """Whether each process ended by itself, as a crawl ends."""
        return not self.hung and not any(self.codes)


class Crawl:
    """`with Crawl(world, folder) as crawl:` servers and a store run; `start` starts processes, `end` judges.

    Attributes:
        processes: Those that run, by name.
        store: The store's server, or the master that is used first.
    """

    def __init__(
        self,
        world: World,
        folder: Path,
        *,
        append_only: bool = True,
        masters: int = 0,
        package: Path = ROOT,
        options: Iterable[str] = (),
    ) -> None:
        self.world = world
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self._append_only = append_only
        self._masters = masters
        self._package = package
        self._options = list(options)
        self._stack = ExitStack()
        self._ended_by_us: set[str] = set()
        self._errors: dict[str, Path] = {}

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start_sites()
            self._start_store()
        except BaseException:
            self._stack.close()
            raise
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
        """Return a new way to the store."""
        return self.with_(TcpProxy(self.store.port))

    def url(self, way: TcpProxy | None = None) -> str:
        """Return the store's address, or the one that a proxy has for it."""
        if self._cluster is not None:
            return self._cluster.url
        return self.store.url if way is None else f"redis://127.0.0.1:{way.port}/0"

    def replica(self) -> ValkeyServer:
        """Return a second server with a replica's options; what it replicates is the caller's to say."""
        server = ValkeyServer(self.folder / "replica", append_only=self._append_only)
        self._stack.callback(server.close)
        return server.start()

    @property
    def cluster(self) -> ValkeyCluster:
        assert self._cluster is not None
        return self._cluster

    def start(
        self, *names: str, way: TcpProxy | None = None, url: str | None = None, options: Iterable[str] = ()
    ) -> None:
        """Start processes. The store is reached by `way` or at `url`, if one is given."""
        for name in names:
            self._errors[name] = self.folder / f"errors-{name}"
            command = [sys.executable, "-P", "-m", "tests.many.process", self.world.written()]
            command += ["--port", str(self._port), "--name", name, "--store", url or self.url(way)]
            with self._errors[name].open("a") as errors:
                self.processes[name] = subprocess.Popen(
                    [*command, *self._options, *options],
                    cwd=self._package,
                    env=os.environ | {"PYTHONPATH": f"{self._package}{os.pathsep}{ROOT}"},
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    text=True,
                )

    def kill(self, *names: str) -> None:
        for name in names:
            process = self.processes.pop(name)
            process.kill()
            process.wait()

    def stop(self, name: str) -> None:
        """Stop a process without ending it."""
        self.processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGCONT)

    def hits(self) -> list[Request]:
        text = self._log.read_text()
        return [read_request(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def wait_for(self, part: float) -> None:
        """Wait until this part of all pages has been requested, and each process has requested something."""
        wanted = part * self.world.hosts * self.world.pages

        def begun() -> bool:
            hits = self.hits()
            if sum(hit.path != ROBOTS for hit in hits) < wanted:
                return False
            # On a busy machine a process may take seconds to open; what befalls the store then is an error at the start.
            return self.processes.keys() <= {hit.sender for hit in hits}

        self._wait(begun)

    def wait_for_end(self) -> None:
        self._wait(lambda: all(each.poll() is not None for each in self.processes.values()))

    def _wait(self, true: Callable[[], bool]) -> None:
        until = time.monotonic() + _HANGS * self.world.ideal_s + _HANGS_S
        while not true() and time.monotonic() < until:
            if all(each.poll() is not None for each in self.processes.values()):
                return
            time.sleep(_LOOK_S)

    def outcome(self) -> Outcome:
        """Wait until all processes have ended, and judge."""
        self.wait_for_end()
        hung = [name for name, each in self.processes.items() if each.poll() is None]
        codes = [each.returncode for name, each in self.processes.items() if name not in hung]
        hits = self.hits()
        took_s = max((hit.at for hit in hits), default=0.0) - min((hit.at for hit in hits), default=0.0)
        outcome = Outcome(judge(self.world, hits), took_s, codes, len(hung), errors=self._failures(hung))
        with contextlib.suppress(redis.RedisError):
            self._count_calls(outcome)
        return outcome

    def _failures(self, hung: list[str]) -> list[str]:
        failed = [name for name, each in self.processes.items() if name in hung or each.returncode]
        return [f"{name}: {_tail(self._errors[name])}" for name in failed]

    def _count_calls(self, outcome: Outcome) -> None:
        for server in self._servers():
            stats = server.client.info("commandstats")
            ran = [stats[name] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats]
            outcome.calls += sum(int(each["calls"]) for each in ran)
            outcome.step_s += sum(float(each["usec"]) for each in ran) / 1e6
            slow = server.client.slowlog_get(128)
            outcome.slowest_s = max([outcome.slowest_s, *(each["duration"] / 1e6 for each in slow)])
        outcome.step_s = outcome.step_s / outcome.calls if outcome.calls else 0.0

    def _servers(self) -> list[ValkeyServer]:
        return [self.store] if self._cluster is None else self._cluster.nodes

    def _start_sites(self) -> None:
        self._log = self.folder / "hits"
        command = [sys.executable, "-m", "tests.many.sites", self.world.written(), str(self._log)]
        sites = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._stack.callback(_end, sites)
        assert sites.stdout is not None
        self._port = int(sites.stdout.readline())

    def _start_store(self) -> None:
        self._cluster = ValkeyCluster(self.folder / "cluster", self._masters) if self._masters else None
        if self._cluster is not None:
            self._stack.callback(self._cluster.close)
            self._cluster.start()
            self.store = self._cluster.nodes[0]
        else:
            self.store = ValkeyServer(self.folder / "valkey", append_only=self._append_only)
            self._stack.callback(self.store.close)
            self.store.start()
        for server in self._servers():
            server.client.config_set("slowlog-log-slower-than", 1000)


def _end(sites: "subprocess.Popen[str]") -> None:
    assert sites.stdin is not None
    assert sites.stdout is not None
    sites.stdin.close()
    sites.wait(10)
    sites.stdout.close()


def _tail(file: Path) -> str:
    lines = file.read_text(errors="replace").splitlines()
    return " | ".join(lines[-6:])[-2_000:]
