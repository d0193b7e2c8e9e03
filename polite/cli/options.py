"""Options that several subcommands have, each checked where it is read."""

import argparse
from collections.abc import Callable
from typing import TypeVar

from polite.errors import InvalidOption
from polite.robots.agent import UserAgent
from polite.robots.dialect import dialect
from polite.robots.policy import FetchPolicy, count
from polite.version import __version__

DEFAULT_AGENT = f"polite-cli/{__version__}"

# The longer name first: it begins as the other does.
_OPTIONS = {
    "only FetchPolicy.allowed_networks can permit": "no option permits",
    "FetchPolicy.allow_private or allowed_networks": "--allow-private",
    "FetchPolicy.allow_private": "--allow-private",
    "FetchPolicy.timeout": "--timeout",
}

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
        type=typed(
            lambda text: duration("--timeout", text, lambda value: FetchPolicy(timeout=value).timeout)
        ),
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
    """A whole number within limits. Raises InvalidOption."""
    try:
        number = int(text)
    except ValueError:
        raise InvalidOption(f"{option}={text!r}: a whole number from {least} to {most} is needed") from None
    count(option, number, least=least, most=most)
    return number


def duration(option: str, text: str, make: Callable[[float], float]) -> float:
    """Seconds, within the limits of the policy that `make` fills. Raises InvalidOption, in words of the command line."""
    try:
        return make(float(text))
    except InvalidOption as error:
        # The policy calls its field by the name that it has in Python.
        raise InvalidOption(f"{option}={str(error).partition('=')[2]}") from error
    except ValueError:
        raise InvalidOption(f"{option}={text!r}: a number of seconds is needed") from None


def spoken(text: str) -> str:
    """The same in words of the command line, where it has the option that the library names."""
    for name, option in _OPTIONS.items():
        text = text.replace(name, option)
    return text
