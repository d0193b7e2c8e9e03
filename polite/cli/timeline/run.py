"""`polite timeline`: print the log of a run as SVG."""

import argparse
from pathlib import Path

from polite.cli.exit_codes import Exit
from polite.cli.timeline.log_entry import Log
from polite.cli.timeline.svg import draw


def timeline(options: argparse.Namespace) -> Exit:
    """Print the SVG document. Raises UnreadableLog, OSError."""
    log = Log(Path(options.log))
    for line in draw(
        log.entries, log.starts, rows=options.rows, title=f"requests by origin: {log.path.name}"
    ):
        print(line)
    return Exit.ALLOWED
