"""Spool: the octets of one body, kept until they are read: the first in memory, the rest in a temporary file."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from typing import BinaryIO

_IN_MEMORY = 1 << 20
_PIECE = 65_536


class Spool:
    """Takes a body as fast as it comes, so that no permit is held while its reader is slow. Write it, then read it once.

    Args:
        in_memory: Octets that are kept in memory. The file has no name, so that nothing is left of a process that is killed.
    """

    def __init__(self, in_memory: int = _IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._octets = bytearray()
        self._file: BinaryIO | None = None

    async def write(self, octets: bytes) -> None:
        """Keep more octets. Raises OSError if the temporary file cannot be written."""
        self._octets += octets
        if len(self._octets) > self._in_memory:
            full, self._octets = self._octets, bytearray()
            await asyncio.to_thread(self._spill, full)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield all octets, in pieces of at most 64 KiB. Raises OSError."""
        file = self._file
        if file is not None:
            await asyncio.to_thread(file.seek, 0)
            while piece := await asyncio.to_thread(file.read, _PIECE):
                yield piece
        for start in range(0, len(self._octets), _PIECE):
            yield bytes(self._octets[start : start + _PIECE])

    def close(self) -> None:
        """Forget the octets. May be called twice."""
        self._octets = bytearray()
        if self._file is not None:
            # A write that goes on in its thread has the file's lock, and ends first.
            self._file.close()

    def _spill(self, octets: bytearray) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._file.write(octets)
