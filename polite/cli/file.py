"""A robots.txt on disk."""

import argparse
from pathlib import Path

from polite.robots.parse import Robots, parse

# More than counts as rules, so that the lint can report what lies beyond the cap (X8); and no device without an end.
READ_LIMIT = 4 * 1024 * 1024


def octets(name: str) -> bytes:
    """The file's first READ_LIMIT octets. Raises OSError."""
    with Path(name).open("rb") as file:
        return file.read(READ_LIMIT)


def rules(options: argparse.Namespace) -> Robots | None:
    """The rules of `--robots FILE`, or None when the sites are to be asked. Raises OSError."""
    return None if options.robots is None else parse(octets(options.robots), dialect=options.dialect)
