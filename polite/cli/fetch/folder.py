"""Bodies in a folder, each named by its digest: what came twice is there once, and no server chooses a name."""

import asyncio
import os
from pathlib import Path

from polite.cli.fetch.page import Page
from polite.cli.fetch.record import digest

BODIES = "bodies"


class Folder:
    """`bodies/ab/ab12...` below `path`, by SHA-256. A file is whole as soon as it has its name."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def keep(self, page: Page) -> str | None:
        """The file's name, as seen from the folder; None for an empty body. Raises OSError."""
        if not page.body:
            return None
        return await asyncio.to_thread(self._write, page.body)

    async def close(self) -> None:
        """There is nothing to give back."""

    def _write(self, body: bytes) -> str:
        name = digest(body)
        file = self._path / BODIES / name[:2] / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Two tasks may have the same body at one time.
            unfinished = file.with_name(f"{name}.{os.urandom(8).hex()}.part")
            try:
                unfinished.write_bytes(body)
                unfinished.replace(file)
            finally:
                unfinished.unlink(missing_ok=True)
        return file.relative_to(self._path).as_posix()
