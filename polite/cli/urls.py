"""URLs as a list has them, one a line: a line that cannot be one spoils itself only."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from polite.cli import stdin
from polite.errors import InvalidURL


def each(lines: Iterable[bytes]) -> Iterator[str | InvalidURL]:
    """The URLs of the lines; blank ones are passed over."""
    return (_read(line) for line in lines if line.strip())


def valid(url: str | InvalidURL) -> str:
    """The URL itself. Raises what was wrong with its line."""
    if isinstance(url, InvalidURL):
        raise url
    return url


def _read(line: bytes) -> str | InvalidURL:
    text = line.decode("utf-8", "backslashreplace").strip()
    if len(line) > stdin.LONGEST_LINE:
        return InvalidURL(text, f"a line of more than {stdin.LONGEST_LINE} octets")
    try:
        # A BOM stands at the start of lists that some editors save.
        return line.decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeDecodeError as error:
        return InvalidURL(text, "it is not UTF-8", error.start)


async def coming(arguments: Iterable[str]) -> AsyncGenerator[str | InvalidURL, None]:
    """The URLs of a command line; where one is -, those of standard input as they come. Raises OSError."""
    for argument in arguments:
        if argument != "-":
            yield argument
            continue
        async with aclosing(stdin.each(stdin.bunches())) as bunches:
            async for bunch in bunches:
                for url in each(bunch):
                    yield url
