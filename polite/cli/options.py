"""Options that several subcommands share, with their checks."""

import argparse
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from polite.cli.terminal import message_of
from polite.compose.gate import open_gate
from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.options import integer
from polite.robots.agent import UserAgent
from polite.robots.dialect import dialect
from polite.robots.parse import Robots, parse
from polite.robots.policy import BODY_LIMIT, FetchPolicy, RobotsPolicy
from polite.version import __version__

_FORM = "HOST:ADDRESS or HOST:PORT:ADDRESS, with an IPv6 address in brackets"
# An address may have a port of its own.
_PARTS = re.compile(
    r"(?P<name>[^:\[\]]+(?::[0-9]{1,5}(?=:))?):(?P<address>(?:[^:\[\]]+|\[[^\[\]]+\])(?::[0-9]{1,5})?)",
    re.ASCII,
)


class NamedHost(argparse.Action):
    """Collects the hosts in a mapping for `open_gate(resolver=)`. A host may be named once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option: str | None = None,
    ) -> None:
        names: dict[str, str] = getattr(namespace, self.dest) or {}
        name, address = cast("tuple[str, str]", values)
        if name in names:
            parser.error(f"{option} names {name} twice")
        setattr(namespace, self.dest, {**names, name: address})


def named_host(text: str) -> tuple[str, str]:
    """Return the host, perhaps with a port, and its address. Raises InvalidOption."""
    # Imported here: it loads the HTTP client.
    from polite.transports.resolver import parsed_names

    found = _PARTS.fullmatch(text)
    if found is None:
        raise InvalidOption(f"--resolve must be {_FORM}, got {text!r}")
    name, address = found["name"], found["address"]
    try:
        parsed_names({name: address})
    except InvalidOption as error:
        raise InvalidOption(f"{str(error).removeprefix('resolver: ')}; write --resolve {_FORM}") from None
    return name.lower(), address


def open_gate_for(
    options: argparse.Namespace, *, max_bytes: int = BODY_LIMIT
) -> AbstractAsyncContextManager[Gate]:
    """Open a gate with the options' agent, dialect, timeout, address rule and named hosts."""
    return open_gate(
        options.agent,
        robots=RobotsPolicy(dialect=options.dialect),
        fetching=FetchPolicy(
            timeout=options.timeout, allow_private=options.allow_private, max_bytes=max_bytes
        ),
        resolver=options.resolve,
    )


# More than the limit on rules, so that lint can report what is beyond it (X8). Bounded, since a device has no end.
READ_LIMIT = 4 * 1024 * 1024


def read_octets(name: str) -> bytes:
    """Return the file's first READ_LIMIT octets. Raises OSError."""
    with Path(name).open("rb") as file:
        return file.read(READ_LIMIT)


def file_rules(options: argparse.Namespace) -> Robots | None:
    """Return the rules of `--robots FILE`, or None without that option. Raises OSError."""
    return None if options.robots is None else parse(read_octets(options.robots), dialect=options.dialect)


def unnamed_agent(names: Iterable[str]) -> UserAgent:
    """Return an agent whose name is longer than all of these names."""
    return UserAgent("unnamed", tokens=("x" * (1 + max(map(len, names), default=0)),))


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
            raise argparse.ArgumentTypeError(message_of(error)) from error

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
        seconds = float(text)
    except ValueError:
        raise InvalidOption(f"{option} must be a number of seconds, got {text!r}") from None
    return make(seconds)


def add_card_options(card: argparse.ArgumentParser) -> None:
    """Add all options of `polite card`."""
    card.add_argument("key", metavar="KEY", help="the file of an Ed25519 key: PEM, or a JWK")
    card.add_argument("--new", action="store_true", help="make a new key in KEY, which must not exist")
    card.add_argument(
        "--signature-agent",
        metavar="URL",
        help="where the key directory is served: its URL, or its origin for the well-known one there",
    )
    card.add_argument("--output", metavar="DIR", help="write the files to DIR, as they are to be served")
    card.add_argument(
        "--agent",
        type=typed(UserAgent),
        default=DEFAULT_AGENT,
        help="the User-Agent header (default: POLITE_AGENT, else %(default)s)",
    )
    card.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="KEY",
        help="another key for the directory, while keys change; may be repeated",
    )
    card.add_argument("--about", metavar="URL", help="the page about the crawler (default: the URL in AGENT)")
    card.add_argument(
        "--contact",
        action="append",
        default=[],
        metavar="URI",
        help="such as mailto:bot@example.com; may be repeated",
    )
    card.add_argument("--purpose", metavar="TEXT", help="what the data is for, such as search")
    card.add_argument("--ip-ranges", metavar="URL", help="where the crawler's address ranges are published")
    add_number(
        card,
        "--days",
        "how long the signatures of the directory are valid (default: %(default)s)",
        most=366,
        default="30",
    )


def add_store_options(store: argparse.ArgumentParser) -> None:
    """Add all options of `polite store`."""
    store.add_argument(
        "action",
        choices=("ls", "show", "purge"),
        metavar="ls|show|purge",
        help="list the origins (or crawls), show all about one, or delete",
    )
    store.add_argument(
        "origin",
        nargs="?",
        metavar="ORIGIN",
        help="any URL of the origin; for show, and for purge of one origin",
    )
    store.add_argument(
        "file",
        metavar="FILE|URL",
        help="the store: a file, the queue of polite fetch --resume, or the URL of a shared one (redis://host/0)",
    )
    store.add_argument("--crawl", metavar="NAME", help="a crawl of a shared store; for ls, show and purge")
    add_number(
        store,
        "--limit",
        "limit on origins and URLs of a queue, or on crawls and entries of each kind of a shared store (default: %(default)s)",
        most=10_000,
        default="20",
    )
    store.add_argument("--yes", action="store_true", help="really purge a shared store")
    store.add_argument("--expired", action="store_true", help="purge only expired copies of robots.txt")
    store.add_argument("--back-offs", action="store_true", help="also purge back-offs that have not ended")
    add_json(store)
