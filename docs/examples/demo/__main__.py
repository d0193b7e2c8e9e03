"""`./dev demo`: its options."""

import argparse
import sys
from collections.abc import Sequence

from docs.examples.demo.run import demo
from polite.errors import PoliteError


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dev demo",
        description="Crawl sixteen virtual hosts on loopback, and judge the crawl by the servers' log.",
        epilog="exit status: 0 the crawl was polite, 1 it was not, 2 wrong usage",
    )
    parser.add_argument(
        "--timeline", metavar="FILE", help="draw the requests of each host over time, as SVG in FILE"
    )
    parser.add_argument(
        "--processes",
        type=int,
        choices=range(1, 65),
        default=1,
        metavar="NUMBER",
        help="crawl by 1 to 64 processes that share a Valkey server, which it starts (default: %(default)s)",
    )
    parser.add_argument(
        "--status-picture",
        metavar="FILE",
        help="take a picture of the status page of a crawl, as PNG in FILE, if a Chromium is installed",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo, and return its exit status."""
    try:
        return demo(_options().parse_args(arguments))
    except (PoliteError, OSError) as failure:
        print(f"dev demo: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
