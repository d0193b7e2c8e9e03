"""What options are: their checks, and what several subcommands make of them."""

import argparse
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from polite.cli.terminal import message_of
from polite.compose.gate import open_gate
from polite.errors import InvalidOption
from polite.gate.explanation import Explanation
from polite.gate.gate import Gate
from polite.options import integer
from polite.pacing.policy import PacingPolicy
from polite.pacing.throttle import REFUSALS
from polite.robots.agent import UserAgent
from polite.robots.parse import Robots, parse
from polite.robots.policy import BODY_LIMIT, FetchPolicy, RobotsPolicy
from polite.version import __version__

if TYPE_CHECKING:
    import aiohttp

    from polite.signing.web_bot_auth import WebBotAuth
    from polite.stores.redis.address import Address

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
        fetching=fetching_of(options, max_bytes),
        resolver=options.resolve,
    )


def signer_of(options: argparse.Namespace) -> "WebBotAuth | None":
    """Return what signs requests, by --sign and its like. Raises InvalidOption."""
    from polite.signing.web_bot_auth import WebBotAuth

    signs, as_string = options.sign is not None, options.signature_agent_as_string
    if signs != (options.signature_agent is not None):
        raise InvalidOption("--sign KEY and --signature-agent URL are needed together")
    if as_string and not signs:
        raise InvalidOption("--signature-agent-as-string has no effect without --sign")
    return WebBotAuth(options.sign, options.signature_agent, agent_as_string=as_string) if signs else None


def shared_store(url: str) -> "Address":
    """Return the address of --store URL, with the credentials of the environment. Raises InvalidOption."""
    from polite.stores.redis.address import Address

    try:
        return Address.of(url).with_login_of()
    except InvalidOption as error:
        raise InvalidOption(f"--{error}") from None


def crawl_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `open_gate` that each crawl has."""
    pacing = PacingPolicy(
        min_delay=options.delay,
        on_long_delay=options.long_delay,
        backoff_statuses=REFUSALS | frozenset(options.back_off_on or ()),
        max_pages=options.max_pages,
        max_bytes=options.max_origin_bytes,
        max_failures=options.max_failures,
    )
    more = {"resolver": options.resolve, "crawl": options.crawl, "journal": options.journal}
    return {"pacing": pacing, "fetching": fetching_of(options), **more}


def fetching_of(options: argparse.Namespace, max_bytes: int = BODY_LIMIT) -> FetchPolicy:
    """Return what connections and responses are permitted."""
    return FetchPolicy(timeout=options.timeout, allow_private=options.allow_private, max_bytes=max_bytes)


@asynccontextmanager
async def session_with(
    gate: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    **options: Any,  # noqa: ANN401 - those of aiohttp
) -> "AsyncIterator[tuple[aiohttp.ClientSession, str]]":
    """Open a session with a gate that `polite serve` has opened; yield it, and what the URLs there begin with."""
    import aiohttp

    token = os.environ.get("POLITE_SERVE_TOKEN")
    headers = {**headers, "Authorization": f"Bearer {token}"} if token else headers
    kind, _, path = gate.partition(":")
    # Of loopback mostly: no nameserver of its own is needed.
    tcp = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver()) if kind != "unix" else None
    connector = tcp or aiohttp.UnixConnector(path)
    async with aiohttp.ClientSession(connector=connector, headers=headers, **options) as session:
        yield session, gate.rstrip("/") if tcp else "http://localhost"


async def explained(options: argparse.Namespace, url: str, *, max_bytes: int = BODY_LIMIT) -> Explanation:
    """Return what a gate with these options says of a URL, whose robots.txt it fetches."""
    async with open_gate_for(options, max_bytes=max_bytes) as gate:
        return await gate.explain(url)


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


def is_unnamed(options: argparse.Namespace) -> bool:
    """Whether the crawler has no name of its own."""
    return options.agent.header == DEFAULT_AGENT  # type: ignore[no-any-return]


def agent_needed(what: str) -> InvalidOption:
    """Return the error that `what` needs a name of its own."""
    return InvalidOption(
        f"{what} needs a name by which sites know your crawler: pass --agent, or set POLITE_AGENT, "
        'such as "ExampleBot/1.0 (+https://example.com/bot)"'
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


def has_urls(options: argparse.Namespace) -> bool:
    """Whether URLs were given, by argument or by list."""
    return bool(options.urls or options.list)


# RFC 9110, 5.6.2 and 5.5: a token; visible characters, spaces and tabs. Octets that are not ASCII have no known encoding.
_FIELD = re.compile(
    r"(?P<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}):[ \t]*(?P<value>[\x21-\x7e](?:[\t\x20-\x7e]{0,8190}[\x21-\x7e])?)[ \t]*"
)
# Fields that polite or its HTTP client sets, with the option that changes each.
_OURS = {
    "user-agent": "use --agent, whose name also selects the rules of robots.txt",
    **dict.fromkeys(("signature", "signature-agent", "signature-input"), "use --sign"),
    "if-none-match": "use --recrawl",
    "if-modified-since": "use --recrawl",
    "accept-encoding": "bodies are requested in gzip, and decoded",
    "host": "it is the URL's; --resolve names its address",
    **dict.fromkeys(
        ("connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
         "upgrade"),
        "it describes the message itself",
    ),
}  # fmt: skip
# What a site may not learn from another one's redirect, and what is written nowhere.
SECRET = frozenset({"authorization", "cookie", "proxy-authorization"})


def header(text: str) -> tuple[str, str]:
    """Return name and value of `NAME: VALUE`. Raises InvalidOption, whose message does not show the value."""
    found = _FIELD.fullmatch(text)
    if found is None:
        # Without a colon, what follows the first word may be a secret.
        name = re.split(r"[^A-Za-z-]", text, maxsplit=1)[0][:100]
        raise InvalidOption(
            f"--header must be 'NAME: VALUE' in ASCII without control characters, of at most 8192 octets, got {name!r}"
        )
    name = found["name"]
    if (why := _OURS.get(name.lower())) is not None:
        raise InvalidOption(f"--header cannot set {name}: {why}")
    return name, found["value"]


def merged(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the fields by name. Of two with one name the last counts: so a command line overrules its configuration."""
    kept: dict[str, tuple[str, str]] = {}
    for name, value in fields:
        kept[name.lower()] = name, value
    return dict(kept.values())


# Switches that a queue keeps, each with a hidden `--no-` form.
SWITCHED_OFF = ("allow-private", "signature-agent-as-string")
