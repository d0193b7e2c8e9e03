"""Options that several subcommands have, each checked where it is read."""

import argparse
from collections.abc import Callable
from typing import TypeVar

from polite.robots.agent import UserAgent
from polite.robots.dialect import dialect
from polite.robots.policy import FetchPolicy, count
from polite.version import __version__

DEFAULT_AGENT = f"polite-cli/{__version__}"

T = TypeVar("T")


def rules(parser: argparse.ArgumentParser) -> None:
    """Whose rules decide: the site's, or a file's."""
    parser.add_argument(
        "--robots",
        metavar="FILE",
        help="decide by the rules in FILE, whatever the site has; nothing is fetched, and a path does for a URL",
    )
    network(parser)


def network(
    parser: argparse.ArgumentParser, *, timeout: str = "for one robots.txt with its redirects"
) -> None:
    """Who asks, how the file is read, and which servers are dialled."""
    parser.add_argument(
        "--agent",
        type=typed(UserAgent),
        default=DEFAULT_AGENT,
        help="the User-Agent header (default: %(default)s)",
    )
    dialects(parser)
    parser.add_argument(
        "--timeout",
        type=typed(lambda text: FetchPolicy(timeout=float(text)).timeout),
        default="30",
        metavar="SECONDS",
        help=f"{timeout} (default: %(default)s)",
    )
    parser.add_argument("--allow-private", action="store_true", help="ask servers on private addresses too")


def dialects(parser: argparse.ArgumentParser) -> None:
    """How robots.txt is read."""
    parser.add_argument(
        "--dialect",
        type=typed(dialect),
        default="rfc9309",
        help="classic, google-2010, google-2019, rfc9309 (default) or google",
    )


def typed(make: Callable[[str], T]) -> Callable[[str], T]:
    """An option is checked where it is read, whether or not it is used then; argparse would drop our own words."""

    def made(text: str) -> T:
        try:
            return make(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return made


def whole(option: str, text: str, *, least: int = 1, most: int) -> int:
    """A whole number within limits. Raises InvalidOption, ValueError."""
    count(option, number := int(text), least=least, most=most)
    return number
