"""Options that several subcommands share, with their checks."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from polite.cli.named_host import NamedHost, named_host
from polite.cli.option_names import command_line_text
from polite.errors import InvalidOption
from polite.options import integer
from polite.robots.agent import UserAgent
from polite.robots.dialect import dialect
from polite.robots.policy import FetchPolicy
from polite.version import __version__

DEFAULT_AGENT = f"polite-cli/{__version__}"
# Requests that may go out under that name, which tells a site nothing of the crawler.
FEW = 5

T = TypeVar("T")


def add_rules(parser: argparse.ArgumentParser) -> None:
    """Add --robots, and the options for fetching robots.txt."""
    parser.add_argument(
        "--robots",
        metavar="FILE",
        help="use the rules in FILE instead of the site's; nothing is fetched, and a URL may be just a path",
    )
    add_network(parser)


def add_network(
    parser: argparse.ArgumentParser,
    *,
    timeout: str = "limit for one robots.txt with its redirects",
    few: str | None = None,
) -> None:
    """Add the options for fetching robots.txt. `few` is what a crawler without a name may fetch."""
    needed = "" if few is None else f"; needed for more than {few}"
    parser.add_argument(
        "--agent",
        type=typed(UserAgent),
        default=DEFAULT_AGENT,
        help=f"the User-Agent header (default: POLITE_AGENT, else %(default)s){needed}",
    )
    add_dialect(parser)
    add_connections(parser, timeout=timeout)


def is_unnamed(options: argparse.Namespace) -> bool:
    """Whether the crawler has no name of its own."""
    return options.agent.header == DEFAULT_AGENT  # type: ignore[no-any-return]


def agent_needed(what: str) -> InvalidOption:
    """Return the error that `what` needs a name of its own."""
    return InvalidOption(
        f"{what} needs a name by which sites know your crawler: pass --agent, or set POLITE_AGENT, "
        'such as "ExampleBot/1.0 (+https://example.com/bot)"'
    )


def add_connections(parser: argparse.ArgumentParser, *, timeout: str) -> None:
    """Add the options of connections."""
    parser.add_argument(
        "--timeout",
        type=typed(
            lambda text: duration("--timeout", text, lambda value: FetchPolicy(timeout=value).timeout)
        ),
        default="30",
        metavar="SECONDS",
        help=f"{timeout} (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-private", action="store_true", help="permit connections to private addresses"
    )
    parser.add_argument(
        "--resolve",
        action=NamedHost,
        type=typed(named_host),
        metavar="HOST[:PORT]:ADDRESS",
        help="connect to ADDRESS for HOST, on all its ports or on PORT, without a nameserver; may be repeated",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str], text: str) -> None:
    """Add --format, whose default is text, and --json, which stands for one of them. `text` is the help."""
    parser.add_argument("--format", choices=formats, default="text", help=text)
    parser.add_argument(
        "--json", action="store_const", const="json", dest="format", help="the same as --format json"
    )


def add_number(
    parser: argparse.ArgumentParser,
    option: str,
    text: str,
    *,
    least: int = 1,
    most: int,
    default: str | None = None,
    metavar: str = "NUMBER",
) -> None:
    """Add an option with an integer within limits. `text` is the help."""
    parser.add_argument(
        option,
        type=typed(partial(whole, option, least=least, most=most)),
        default=default,
        metavar=metavar,
        help=text,
    )


def add_dialect(parser: argparse.ArgumentParser) -> None:
    """Add --dialect."""
    parser.add_argument(
        "--dialect",
        type=typed(dialect),
        default="rfc9309",
        help="how to read robots.txt: classic, google-2010, google-2019, rfc9309 (default) or google",
    )


def typed(make: Callable[[str], T]) -> Callable[[str], T]:
    """Return a converter for argparse that keeps the message of a ValueError, which argparse would drop."""

    def convert(text: str) -> T:
        try:
            return make(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def whole(option: str, text: str, *, least: int = 1, most: int) -> int:
    """Return an integer within limits. Raises InvalidOption."""
    try:
        number = int(text)
    except ValueError:
        raise InvalidOption(f"{option} must be an integer from {least} to {most}, got {text!r}") from None
    return integer(option, number, least=least, most=most)


def duration(option: str, text: str, make: Callable[[float], float]) -> float:
    """Return seconds within the limits of the policy that `make` fills. Raises InvalidOption."""
    try:
        return make(float(text))
    except InvalidOption as error:
        raise InvalidOption(command_line_text(str(error))) from error
    except ValueError:
        raise InvalidOption(f"{option} must be a number of seconds, got {text!r}") from None
