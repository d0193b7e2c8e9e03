"""The URLs of a run: those of the command line, and the lines of lists, each as it was given and with its place."""

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

from polite.cli import stdin
from polite.cli.options import FEW, agent_needed
from polite.cli.urls import as_given, is_comment, parse_line
from polite.errors import InvalidOption, InvalidURL, without_credentials

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


async def read(
    arguments: Iterable[str], lists: Iterable[str] = (), *, few: int | None = None
) -> AsyncGenerator[ListedURL, None]:
    """Yield the URLs of a command line, then those of the files `lists`.

    `-` stands for standard input, read as it arrives; blank lines and comments are left out.

    Raises OSError, and InvalidOption after `few` URLs.
    """
    sources = chain(
        map(_argument, arguments), (_lines(name, partial(stdin.file_batches, name)) for name in lists)
    )
    count = 0
    for source in sources:
        async with aclosing(source) as listed:
            async for each in listed:
                count += 1
                if few is not None and count > few:
                    raise more_than_few()
                yield each


def are_few(few: int, arguments: Iterable[str], lists: Iterable[str]) -> bool:
    """Whether these are at most `few` URLs. Only `read` counts what can be read only once. Raises OSError."""
    files = (stdin.file_batches(name) for name in lists if Path(name).is_file())
    lines = (line for batches in files for batch in batches for line in batch if not is_comment(line))
    urls = (argument for argument in arguments if argument != STANDARD_INPUT)
    return next(islice(chain(urls, lines), few, None), None) is None


def more_than_few() -> InvalidOption:
    """Return the error of a list that is too long for a crawler without a name."""
    return agent_needed(f"polite fetch of more than {FEW} URLs")


async def _argument(argument: str) -> AsyncGenerator[ListedURL, None]:
    if argument != STANDARD_INPUT:
        yield ListedURL(argument, without_credentials(argument))
        return
    async with aclosing(_lines("standard input", stdin.line_batches)) as listed:
        async for each in listed:
            yield each


async def _lines(name: str, source: Callable[[], Iterator[list[bytes]]]) -> AsyncGenerator[ListedURL, None]:
    number = 0
    async with aclosing(stdin.in_thread(source())) as batches:
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
