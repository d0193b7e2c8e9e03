"""Reads lists of URLs, one per line. An invalid line becomes an InvalidURL and does not stop the list."""

import re
from collections.abc import Iterable, Iterator

from polite.cli.stdin import LONGEST_LINE
from polite.errors import InvalidURL

# The URL parser keeps a space as %20, and skips a tab: two URLs on one line would become one that nothing links to.
_TWO_URLS = re.compile(r"https?://.*?\s(?=https?://)", re.IGNORECASE)


def parse_lines(lines: Iterable[bytes]) -> Iterator[str | InvalidURL]:
    """Yield the URL of each line that is neither blank nor a comment."""
    return (parse_line(line) for line in lines if not is_comment(line))


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
