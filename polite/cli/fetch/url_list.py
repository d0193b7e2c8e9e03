"""The URLs of a run: those of the command line, and the lines of lists, each as it was given and with its place."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass

from polite.cli import stdin
from polite.cli.urls import as_given, is_comment, parse_line
from polite.errors import InvalidURL, without_credentials

STANDARD_INPUT = "-"
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


async def read(arguments: Iterable[str], lists: Iterable[str] = ()) -> AsyncGenerator[ListedURL, None]:
    """Yield the URLs of a command line, then those of the files `lists`.

    `-` stands for standard input, read as it arrives; blank lines and comments are left out. Raises OSError.
    """
    for argument in arguments:
        if argument != STANDARD_INPUT:
            yield ListedURL(argument, without_credentials(argument))
            continue
        async with aclosing(_lines("standard input", stdin.line_batches())) as listed:
            async for each in listed:
                yield each
    for name in lists:
        async with aclosing(_lines(name, stdin.file_batches(name))) as listed:
            async for each in listed:
                yield each


async def _lines(name: str, source: Iterator[list[bytes]]) -> AsyncGenerator[ListedURL, None]:
    number = 0
    async with aclosing(stdin.in_thread(source)) as batches:
        async for batch in batches:
            for line in batch:
                number += 1
                if not is_comment(line):
                    yield _listed(line, f"{name}:{number}")


def _listed(line: bytes, at: str) -> ListedURL:
    given = as_given(line)
    if len(line) > stdin.LONGEST_LINE:
        given = f"{given[:_SHOWN]}..."
    return ListedURL(parse_line(line), without_credentials(given), at)
