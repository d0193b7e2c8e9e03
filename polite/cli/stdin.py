"""Lists of URLs, from arguments, files and standard input, read while they arrive."""

import asyncio
import errno
import os
import re
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from polite.cli.options import FEW, agent_needed
from polite.errors import InvalidOption, InvalidURL, without_credentials
from polite.url.parse import MAX_URL

# Octets. No valid URL needs more, and a line without an end must not fill the memory.
LONGEST_LINE = 4 * MAX_URL
_CHUNK = 65_536

T = TypeVar("T")


def descriptor() -> int:
    """Return the file descriptor to read. A reader blocked in `sys.stdin` would hold its lock forever.

    Raises OSError if standard input is closed.
    """
    if sys.stdin is None:  # None when started with `<&-`, although its type excludes it
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard input")
    return sys.stdin.fileno()


def read_octets(limit: int) -> bytes:
    """Return standard input up to its end, at most `limit` octets. Raises OSError."""
    with open(descriptor(), "rb", closefd=False) as stream:
        return stream.read(limit)


def lines(name: str = "-") -> Iterator[bytes]:
    """Yield the lines of a file, or of standard input (`-`) as they arrive, without LF. Raises OSError."""
    return chain.from_iterable(batches(name))


def batches(name: str) -> Iterator[list[bytes]]:
    """Yield the lines of a file, or of standard input (`-`) as they arrive, those of one read together. Raises OSError."""
    if name == "-":
        source = descriptor()
        yield from batches_of(lambda: os.read(source, _CHUNK))
        return
    with Path(name).open("rb", buffering=0) as file:
        yield from batches_of(lambda: file.read(_CHUNK))


def batches_of(read: Callable[[], bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that each read completes. A line longer than LONGEST_LINE is cut to LONGEST_LINE + 1 octets."""
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


async def in_thread(source: Iterator[T]) -> AsyncGenerator[T, None]:
    """Yield the items of `source`, each read in a thread when it is asked for, without blocking the event loop.

    The thread is a daemon. With `asyncio.to_thread` the program could not exit while a read blocks.
    """

    def read(reply: Future[list[T]]) -> None:
        """Set a list of one item, or an empty list at the end."""
        if not reply.set_running_or_notify_cancel():
            return
        try:
            reply.set_result(list(islice(source, 1)))
        except Exception as error:  # noqa: BLE001 - raised again by the waiting task
            reply.set_exception(error)

    while True:
        reply: Future[list[T]] = Future()
        threading.Thread(target=read, args=(reply,), daemon=True).start()
        if not (item := await asyncio.wrap_future(reply)):
            return
        yield item[0]


# The URL parser keeps a space as %20, and skips a tab: two URLs on one line would become one that nothing links to.
_TWO_URLS = re.compile(r"https?://.*?\s(?=https?://)", re.IGNORECASE)


def is_comment(line: bytes) -> bool:
    """Whether a line is blank, or a comment: its first character is #, with which no URL starts."""
    start = line[:LONGEST_LINE].removeprefix(b"\xef\xbb\xbf").lstrip()
    return not start or start.startswith(b"#")


def require_url(url: str | InvalidURL) -> str:
    """Return the URL. Raises the InvalidURL of an invalid line."""
    if isinstance(url, InvalidURL):
        raise url
    return url


def as_given(line: bytes) -> str:
    """Return a line as text. Octets that are not UTF-8 are escaped; its end is removed, and a BOM, which some editors save."""
    return line.decode("utf-8", "backslashreplace").removesuffix("\r").removeprefix("\ufeff")


def parse_line(line: bytes) -> str | InvalidURL:
    """Return the URL of a line without its LF."""
    text = as_given(line).strip()
    if len(line) > LONGEST_LINE:
        return InvalidURL(text, f"the line is longer than {LONGEST_LINE} octets")
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return InvalidURL(text, "it is not UTF-8", error.start)
    if (two := _TWO_URLS.match(text)) is not None:
        return InvalidURL(text, "the line has two URLs: write one per line", two.end())
    return text


_STANDARD_INPUT = "-"
# Characters of a line that no URL can be. The others are kept whole.
_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class ListedURL:
    """One URL to fetch.

    Attributes:
        url: as it is parsed, or what is wrong with the line.
        given: the line or the argument as it was given, without credentials.
        at: the list and the line, such as `urls.txt:12`; None for an argument.
    """

    url: str | InvalidURL
    given: str
    at: str | None = None


async def read(
    arguments: Iterable[str], lists: Iterable[str] = (), *, few: int | None = None
) -> AsyncGenerator[ListedURL, None]:
    """Yield the URLs of a command line, then those of the files `lists`.

    `-` stands for standard input, read as it arrives; blank lines and comments are left out.

    Raises OSError, and InvalidOption after `few` URLs.
    """
    count = 0
    for name, is_list in [*((each, False) for each in arguments), *((each, True) for each in lists)]:
        async with aclosing(_listed(name, is_list=is_list)) as listed:
            async for each in listed:
                count += 1
                if few is not None and count > few:
                    raise more_than_few()
                yield each


def are_few(few: int, arguments: Iterable[str], lists: Iterable[str]) -> bool:
    """Whether these are at most `few` URLs. Only `read` counts what can be read only once. Raises OSError."""
    files = (batches(name) for name in lists if Path(name).is_file())
    lines = (line for file in files for batch in file for line in batch if not is_comment(line))
    urls = (argument for argument in arguments if argument != _STANDARD_INPUT)
    return next(islice(chain(urls, lines), few, None), None) is None


def more_than_few() -> InvalidOption:
    """Return the error of a list that is too long for a crawler without a name."""
    return agent_needed(f"polite fetch of more than {FEW} URLs")


async def _listed(name: str, *, is_list: bool) -> AsyncGenerator[ListedURL, None]:
    """Yield the URLs of a list, or the argument itself."""
    source = batches(name)
    if name == _STANDARD_INPUT and not is_list:
        name = "standard input"
    elif not is_list:
        yield ListedURL(name, without_credentials(name))
        return
    number = 0
    async with aclosing(in_thread(source)) as found:
        async for batch in found:
            for line in batch:
                number += 1
                if not is_comment(line):
                    given = as_given(line)
                    if len(line) > LONGEST_LINE:
                        given = f"{given[:_SHOWN]}..."
                    yield ListedURL(parse_line(line), without_credentials(given), f"{name}:{number}")
