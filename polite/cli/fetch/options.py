"""The options of `polite fetch`."""

import argparse

from polite.cli.options import duration, network, typed, whole
from polite.pacing.policy import PacingPolicy
from polite.robots.policy import MOST_BYTES, MOST_REDIRECTS


def options(fetch: argparse.ArgumentParser) -> None:
    """Add them all."""
    _where(fetch)
    _how(fetch)
    network(fetch, timeout="for one page, and for one robots.txt with its redirects")


def _where(fetch: argparse.ArgumentParser) -> None:
    """What is written, and where to."""
    fetch.add_argument(
        "--output",
        metavar="DIR",
        help="write records to DIR/records.jsonl instead of standard output, and bodies to DIR/bodies",
    )
    fetch.add_argument(
        "--warc",
        metavar="FILE",
        help="write bodies to a WARC file, whose name ends in .warc.gz (needs polite-crawl[warc])",
    )
    fetch.add_argument(
        "--resume",
        metavar="FILE",
        help="keep the queue in FILE, and go on with what an earlier run has left there",
    )
    fetch.add_argument(
        "--log", metavar="FILE", help="write each request and refusal to FILE, for polite timeline"
    )
    fetch.add_argument("--quiet", action="store_true", help="show no progress")


def _how(fetch: argparse.ArgumentParser) -> None:
    """How much of it, and how fast."""
    fetch.add_argument(
        "--delay",
        type=typed(
            lambda text: duration("--delay", text, lambda value: PacingPolicy(min_delay=value).min_delay)
        ),
        default="1",
        metavar="SECONDS",
        help="between two requests to one origin, at least; what its robots.txt asks for makes it longer (default: %(default)s)",
    )
    fetch.add_argument(
        "--concurrency",
        type=typed(lambda text: whole("--concurrency", text, most=10_000)),
        default="32",
        metavar="NUMBER",
        help="pages under way at one time, each of another origin (default: %(default)s)",
    )
    fetch.add_argument(
        "--max-bytes",
        type=typed(lambda text: whole("--max-bytes", text, most=MOST_BYTES)),
        default="5000000",
        metavar="OCTETS",
        help="of a page, decoded or not; the rest is not read (default: %(default)s)",
    )
    fetch.add_argument(
        "--max-redirects",
        type=typed(lambda text: whole("--max-redirects", text, least=0, most=MOST_REDIRECTS)),
        default="5",
        metavar="NUMBER",
        help="in a row, each a request in its own turn (default: %(default)s)",
    )
    fetch.add_argument(
        "--tries",
        type=typed(lambda text: whole("--tries", text, most=100)),
        default="3",
        metavar="NUMBER",
        help="of a page, and of a robots.txt, before it is given up (default: %(default)s)",
    )
