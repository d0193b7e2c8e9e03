"""`polite timeline`: the log of a run as a picture on standard output."""

import argparse
from pathlib import Path

from polite.cli.exit_codes import Exit
from polite.cli.timeline.log_entry import Log
from polite.cli.timeline.svg import draw


def timeline(options: argparse.Namespace) -> Exit:
    """Print the picture. Raises Unreadable, OSError."""
    log = Log(Path(options.log))
    for line in draw(
        log.moments, log.starts, rows=options.rows, title=f"requests by origin: {log.path.name}"
    ):
        print(line)
    return Exit.ALLOWED
