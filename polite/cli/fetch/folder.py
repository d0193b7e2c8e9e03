"""Stores bodies in a folder, each named by its digest: equal bodies are stored once, and servers choose no names."""

import asyncio
import os
from pathlib import Path

from polite.cli.fetch.page import Page
from polite.cli.fetch.record import digest

BODIES = "bodies"


class Folder:
    """Stores bodies as `bodies/ab/ab12...` (SHA-256) below `path`. A file gets its name once it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def keep(self, page: Page) -> str | None:
        """Return the file's name relative to the folder, or None for an empty body. Raises OSError."""
        if not page.body:
            return None
        return await asyncio.to_thread(self._write, page.body)

    async def close(self) -> None:
        """Nothing to release."""

    def _write(self, body: bytes) -> str:
        name = digest(body)
        file = self._path / BODIES / name[:2] / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Two tasks may store the same body at the same time.
            unfinished = file.with_name(f"{name}.{os.urandom(8).hex()}.part")
            try:
                unfinished.write_bytes(body)
                unfinished.replace(file)
            finally:
                unfinished.unlink(missing_ok=True)
        return file.relative_to(self._path).as_posix()
