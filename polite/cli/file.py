"""Reads a robots.txt on disk."""

import argparse
from pathlib import Path

from polite.robots.parse import Robots, parse

# More than the limit on rules, so that lint can report what is beyond it (X8). Bounded, since a device has no end.
READ_LIMIT = 4 * 1024 * 1024


def read_octets(name: str) -> bytes:
    """Return the file's first READ_LIMIT octets. Raises OSError."""
    with Path(name).open("rb") as file:
        return file.read(READ_LIMIT)


def file_rules(options: argparse.Namespace) -> Robots | None:
    """Return the rules of `--robots FILE`, or None without that option. Raises OSError."""
    return None if options.robots is None else parse(read_octets(options.robots), dialect=options.dialect)
