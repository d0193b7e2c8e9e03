"""Reads lists of URLs, one per line. An invalid line becomes an InvalidURL and does not stop the list."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from polite.cli import stdin
from polite.errors import InvalidURL


def parse_lines(lines: Iterable[bytes]) -> Iterator[str | InvalidURL]:
    """Yield the URL of each line that is not blank."""
    return (_parse(line) for line in lines if line.strip())


def require_url(url: str | InvalidURL) -> str:
    """Return the URL. Raises the InvalidURL of an invalid line."""
    if isinstance(url, InvalidURL):
        raise url
    return url


def _parse(line: bytes) -> str | InvalidURL:
    text = line.decode("utf-8", "backslashreplace").strip()
    if len(line) > stdin.LONGEST_LINE:
        return InvalidURL(text, f"the line is longer than {stdin.LONGEST_LINE} octets")
    try:
        # Some editors save files with a BOM.
        return line.decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeDecodeError as error:
        return InvalidURL(text, "it is not UTF-8", error.start)


async def read(arguments: Iterable[str]) -> AsyncGenerator[str | InvalidURL, None]:
    """Yield the URLs of a command line; `-` stands for standard input, read as it arrives. Raises OSError."""
    for argument in arguments:
        if argument != "-":
            yield argument
            continue
        async with aclosing(stdin.in_thread(stdin.line_batches())) as batches:
            async for batch in batches:
                for url in parse_lines(batch):
                    yield url
