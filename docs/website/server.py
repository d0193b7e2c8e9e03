"""Serves the built site on loopback, and builds it again when a source changes."""

import time
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

_WATCHED = ["*.md", "docs/**/*", "polite/**/*.py"]
_LOOK_EVERY_S = 1.0


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def open_server(site: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder, which need not exist yet. It listens, and answers once `serve` runs.

    Raises:
        OSError: The port is taken.
    """
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(site)))


def serve(server: ThreadingHTTPServer, root: Path, changed: Callable[[set[Path]], object]) -> None:
    """Serve until interrupted, and call `changed` with the sources that were written, added or removed: first with all."""
    print(f"http://127.0.0.1:{server.server_port}/ (stop with Ctrl-C)", flush=True)
    Thread(target=server.serve_forever, daemon=True).start()
    seen: dict[Path, int] = {}
    try:
        while True:
            now = times(root)
            if now != seen:
                # Building takes seconds. What is written meanwhile is a change of its own.
                before, seen = seen, now
                changed({file for file, _ in now.items() ^ before.items()})
            time.sleep(_LOOK_EVERY_S)
    except KeyboardInterrupt:
        server.shutdown()


def times(root: Path) -> dict[Path, int]:
    """Return when each source was last written, in nanoseconds."""
    files = (file for pattern in _WATCHED for file in root.glob(pattern) if file.is_file())
    return {file: file.stat().st_mtime_ns for file in files if "__pycache__" not in file.parts}
