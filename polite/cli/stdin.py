"""Standard input: its octets, and its lines as soon as they are there."""

import asyncio
import errno
import os
import queue
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future
from itertools import chain, islice
from typing import TypeVar

from polite.url.parse import MAX_URL

# Octets. No URL that is accepted needs more, and a line without an end must not fill the memory.
LONGEST_LINE = 4 * MAX_URL
_CHUNK = 65_536

T = TypeVar("T")


def descriptor() -> int:
    """Where to read; not through `sys.stdin`, whose lock a reader that waits for ever would never give back.

    Raises OSError when standard input is closed.
    """
    if sys.stdin is None:  # as the interpreter has it when started with `<&-`, whatever its type says
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
    return sys.stdin.fileno()


def octets(limit: int) -> bytes:
    """All of it up to its end, or the first `limit` octets. Raises OSError."""
    with open(descriptor(), "rb", closefd=False) as stream:
        return stream.read(limit)


def lines() -> Iterator[bytes]:
    """Line by line, each as soon as it has come. Raises OSError."""
    return chain.from_iterable(bunches())


def bunches() -> Iterator[list[bytes]]:
    """The same lines, those that came together at one time: of a long list that is many. Raises OSError."""
    source = descriptor()
    return _bunched(lambda: os.read(source, _CHUNK))


def split(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Lines without their LF; of one that is longer than LONGEST_LINE the first LONGEST_LINE + 1 octets."""
    return chain.from_iterable(_bunched(read))


def _bunched(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    line = bytearray()
    while chunk := read():
        *ends, begun = chunk.split(b"\n")
        whole = []
        for end in ends:
            line += end[: LONGEST_LINE + 1 - len(line)]
            whole.append(bytes(line))
            line.clear()
        line += begun[: LONGEST_LINE + 1 - len(line)]
        if whole:
            yield whole
    if line:
        yield [bytes(line)]


async def each(source: Iterator[T]) -> AsyncGenerator[T, None]:
    """The same items without holding up the loop; `source` is asked for one when one is wanted, in a thread of its own.

    The thread is a daemon: `asyncio.to_thread` would make the end of the program wait for a line that may never come.
    """
    wanted: queue.SimpleQueue[Future[list[T]] | None] = queue.SimpleQueue()
    threading.Thread(target=_serve, args=(source, wanted), daemon=True).start()
    try:
        while True:
            answer: Future[list[T]] = Future()
            wanted.put(answer)
            if not (item := await asyncio.wrap_future(answer)):
                return
            yield item[0]
    finally:
        wanted.put(None)


def _serve(source: Iterator[T], wanted: "queue.SimpleQueue[Future[list[T]] | None]") -> None:
    """Answers each future with one item, or with none at the end."""
    while (answer := wanted.get()) is not None:
        if not answer.set_running_or_notify_cancel():
            return  # left before it was looked at: there will be no other
        try:
            answer.set_result(list(islice(source, 1)))
        except Exception as error:  # noqa: BLE001 - handed to the one who waits, and who would else wait for ever
            answer.set_exception(error)
