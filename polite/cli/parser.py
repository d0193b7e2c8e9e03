"""Declares the subcommands and their arguments; prints the script with which a shell completes them."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, TypeAlias, get_args

from polite.cli.options import (
    DEFAULT_AGENT,
    FEW,
    SWITCHED_OFF,
    NamedHost,
    duration,
    header,
    named_host,
    typed,
    whole,
)
from polite.errors import InvalidOption
from polite.options import needing, number
from polite.pacing.policy import PacingPolicy
from polite.pacing.throttle import LongDelay
from polite.robots.agent import UserAgent
from polite.robots.dialect import BY_NAME, dialect
from polite.robots.policy import MOST_BYTES, MOST_REDIRECTS, FetchPolicy
from polite.version import __compiled__, __version__


class WrongUsage(Exception):
    """A command line is wrong. The message names the command whose `--help` tells more."""


class _Parser(argparse.ArgumentParser):
    """Raises a usage error: what it is printed with depends on where the arguments are from."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"{message} (see {self.prog} --help)")


def _refusal(text: str) -> int:
    status = whole("--back-off-on", text, least=400, most=599)
    PacingPolicy(backoff_statuses={status})
    return status


def _date(option: str, text: str) -> datetime:
    from polite.sitemaps.entry import parse_date

    found, _ = parse_date(text.strip())
    if found is None:
        raise InvalidOption(f"{option} must be a date such as 2026-05-01 or 2026-05-01T10:30Z, got {text!r}")
    return found


def _until(text: str) -> datetime:
    from polite.sitemaps.entry import parse_date

    found, _ = parse_date(text.strip())
    if found is None or "T" not in text:
        raise InvalidOption(f"--until must be a date and a time such as 2026-05-01T10:30Z, got {text!r}")
    return found


def _span(text: str) -> float:
    from polite.cli.orders import span

    return span(text)


# Arguments by name and what they take, as --help shows them. The value is the help, of an option without a metavar that of a
# switch; or the keywords of `add_argument`. `limits` of an integer and `seconds`, which checks a time, stand for a type.
_Arguments: TypeAlias = Mapping[str, str | Mapping[str, Any]]


_DEFAULT = " (default: %(default)s)"


def _number(text: str, most: int, *, least: int = 1, default: str | None = None) -> dict[str, Any]:
    text += "" if default is None else _DEFAULT
    return {"help": text, "limits": (least, most), "default": default}


def _seconds(text: str, check: Callable[[float], float], default: str | None) -> dict[str, Any]:
    text += "" if default is None else _DEFAULT
    return {"help": text, "seconds": check, "default": default}


def _repeated(text: str, **more: object) -> dict[str, Any]:
    return {"help": text, "action": "append", **more}


def _choice(text: str, *choices: str, default: str | None = None) -> dict[str, Any]:
    return {"help": text, "choices": choices, "default": default}


def _connections(timeout: str) -> _Arguments:
    return {
        "--timeout SECONDS": _seconds(timeout, lambda seconds: FetchPolicy(timeout=seconds).timeout, "30"),
        "--allow-private": "permit connections to private addresses",
        "--resolve HOST[:PORT]:ADDRESS": {
            "help": "connect to ADDRESS for HOST, on all its ports or on PORT, without a nameserver; may be repeated",
            "action": NamedHost,
            "type": typed(named_host),
        },
    }


def _agent(needed: str = "") -> _Arguments:
    text = f"the User-Agent header (default: POLITE_AGENT, else %(default)s){needed}"
    return {"--agent AGENT": {"help": text, "type": typed(UserAgent), "default": DEFAULT_AGENT}}


def _network(timeout: str = "limit for one robots.txt with its redirects", needed: str = "") -> _Arguments:
    """Return the options for fetching robots.txt. `needed` says when a crawler needs a name."""
    return {**_agent(needed), **_DIALECT, **_connections(timeout)}


_DIALECT: _Arguments = {
    "--dialect DIALECT": {
        "help": f"how to read robots.txt: {', '.join(BY_NAME)} (default: %(default)s)",
        "type": typed(dialect),
        "default": "rfc9309",
    }
}
_JSON: _Arguments = {"--json": "print one JSON object per line"}
_RULES: _Arguments = {
    "--robots FILE": "use the rules in FILE instead of the site's; nothing is fetched, and a URL may be just a path",
    **_network(),
}
_STORE: _Arguments = {
    "action ls|show|purge": _choice(
        "list the origins (or crawls), show all about one, or delete", "ls", "show", "purge"
    ),
    "origin ORIGIN": {"help": "any URL of the origin; for show, and for purge of one origin", "nargs": "?"},
    "file FILE|URL": "the store: a file, the queue of polite fetch --resume, or the URL of a shared one (redis://host/0)",
    "--crawl NAME": "a crawl of a shared store; for ls, show and purge",
    "--limit NUMBER": _number(
        "limit on origins and URLs of a queue, or on crawls and entries of each kind of a shared store",
        10_000,
        default="20",
    ),
    "--yes": "really purge a shared store",
    "--expired": "purge only expired copies of robots.txt",
    "--back-offs": "also purge back-offs that have not ended",
    **_JSON,
}
_CARD: _Arguments = {
    "key KEY": "the file of an Ed25519 key: PEM, or a JWK",
    "--new": "make a new key in KEY, which must not exist",
    "--signature-agent URL": "where the key directory is served: its URL, or its origin for the well-known one there",
    "--output DIR": "write the files to DIR, as they are to be served",
    **_agent(),
    "--also KEY": _repeated("another key for the directory, while keys change; may be repeated", default=[]),
    "--about URL": "the page about the crawler (default: the URL in AGENT)",
    "--contact URI": _repeated("such as mailto:bot@example.com; may be repeated", default=[]),
    "--purpose TEXT": "what the data is for, such as search",
    "--ip-ranges URL": "where the crawler's address ranges are published",
    "--days NUMBER": _number("how long the signatures of the directory are valid", 366, default="30"),
}
_ORDERED: _Arguments = {
    "pattern PATTERN": "an origin (https://example.com), a domain and all hosts below it ('*.example.com'), or the start of URLs",
    "--because TEXT": {"help": "why, for logs, and for polite holds", "required": True},
}
_OF_WHOM: _Arguments = {
    "--store FILE|URL": "the robots store of the crawls: a file, or the URL of a shared one (redis://host/0)",
    "--gate URL": "a gate that polite serve has opened: http://127.0.0.1:8700, or unix:PATH (its token: POLITE_SERVE_TOKEN)",
    **_JSON,
}
_ORDER_EXITS = "0 success, 2 wrong usage, or the store or the gate cannot be used"
# The greatest budget of an origin, the greatest --limit, and a week in seconds.
_MOST_SPENT, _MOST_LISTED, _MOST_OUTAGE_S = 10**15, 10**9, 604_800.0
_OFF: _Arguments = {
    f"--no-{name}": {
        "help": argparse.SUPPRESS,
        "action": "store_false",
        "dest": name.replace("-", "_"),
        "default": argparse.SUPPRESS,
    }
    for name in SWITCHED_OFF
}
_FETCH: _Arguments = {
    "urls URL": {"help": "a URL; - reads URLs from standard input, one per line", "nargs": "*"},
    "--config FILE": "a TOML file with options in a table [fetch]; the command line and POLITE_AGENT and POLITE_DELAY overrule it "
    "(default: POLITE_CONFIG)",
    "--list FILE": _repeated(
        "read URLs from FILE, one per line; lines that start with # are comments; may be repeated"
    ),
    "--limit NUMBER": _number("limit on new URLs of the list; the rest of it is not read", _MOST_LISTED),
    "--header NAME:VALUE": _repeated(
        "a field to send with each page request, but not for robots.txt; may be repeated", type=typed(header)
    ),
    "--output DIR": "write records to DIR/records.jsonl instead of standard output, and bodies to DIR/bodies",
    "--warc FILE": "write bodies to a WARC file; its name must end in .warc.gz (needs polite-crawl[warc])",
    "--resume FILE": "keep the queue in FILE, and continue with the URLs that an earlier run left there",
    "--retry WHICH": _choice(
        "with --resume: try again URLs that earlier runs did not fetch: those that failed, given-up ones, or all",
        *("failed", "given-up", "all"),
    ),
    "--change": "with --resume: go on with other options than the queue keeps, such as another --agent or --delay",
    "--recrawl FILE": "keep ETag and Last-Modified of pages in FILE, and request pages that an earlier run fetched only if they "
    "changed",
    "--store URL": "share queue, delays and robots.txt with other machines on a Redis or Valkey server (redis://host/0; needs "
    "polite-crawl[redis]); POLITE_STORE_USER and POLITE_STORE_PASSWORD are for a URL without credentials",
    "--crawl NAME": "the crawl in --store to join or to begin",
    "--journal FILE": "append each decision to FILE, for polite journal",
    "--log FILE": "write each request, refusal and back-off to FILE, for polite timeline",
    "--status PORT": _number(
        "serve a live status page of the run at http://127.0.0.1:PORT/; 0 for a port that is free",
        65_535,
        least=0,
    ),
    "--quiet": "print no progress",
    "--delay SECONDS": _seconds(
        "least delay between two requests to one origin; its robots.txt may ask for more",
        lambda seconds: PacingPolicy(min_delay=seconds).min_delay,
        "1",
    ),
    "--concurrency NUMBER": _number(
        "limit on requests in flight, each to a different origin", 10_000, default="32"
    ),
    "--max-bytes OCTETS": _number(
        "limit for one page, as sent and decoded; the rest is not read", MOST_BYTES, default="5000000"
    ),
    "--max-redirects NUMBER": _number(
        "limit on redirects in a row; each waits for its own turn", MOST_REDIRECTS, least=0, default="5"
    ),
    "--tries NUMBER": _number("limit on attempts for one page, and for one robots.txt", 100, default="3"),
    "--max-outage SECONDS": _seconds(
        "how long a site may be out of reach before its URLs are given up; until then, attempts without a connection do not count "
        "for --tries",
        partial(number, "--max-outage", most=_MOST_OUTAGE_S),
        "600",
    ),
    "--max-pages NUMBER": _number(
        "limit on pages of one origin; then its other URLs are dropped", _MOST_SPENT
    ),
    "--max-origin-bytes OCTETS": _number(
        "limit on octets of one origin's pages, as sent; then its other URLs are dropped", _MOST_SPENT
    ),
    "--max-failures NUMBER": _number(
        "limit on failures of one origin in a row; then its other URLs are dropped", _MOST_SPENT
    ),
    "--long-delay RULE": _choice(
        "what to do about a Crawl-delay of more than 300 s: cap it to 300 s (default), obey it, or refuse the origin's URLs",
        *get_args(LongDelay),
        default="cap",
    ),
    "--back-off-on STATUS": _repeated(
        "a status that backs the origin off, besides 429 and 503: 403 or 500, say; may be repeated",
        type=typed(_refusal),
    ),
    "--sign KEY": "sign requests over https with the Ed25519 key in KEY (Web Bot Auth; needs polite-crawl[sign])",
    "--signature-agent URL": "where servers find the public key of --sign; polite card writes the files for it",
    "--signature-agent-as-string": "send --signature-agent in the older form, the only one that Cloudflare verifies (July 2026)",
    **_network(
        "limit for one page, and for one robots.txt with its redirects",
        f"; needed for more than {FEW} URLs, and for --store",
    ),
    **_OFF,
}
_SHARED = frozenset(
    {
        *(
            "--recrawl",
            "--journal",
            "--delay",
            "--max-bytes",
            "--max-pages",
            "--max-origin-bytes",
            "--max-failures",
            "--long-delay",
        ),
        *("--back-off-on", "--sign", "--signature-agent", "--signature-agent-as-string"),
    }
)
_SERVE: _Arguments = {
    "--listen ADDRESS": {
        "help": "where to listen: HOST:PORT, with port 0 for one that is free, or unix:PATH for a socket of this user alone; "
        "any HOST but loopback needs a token" + _DEFAULT,
        "default": "127.0.0.1:8700",
    },
    "--token-file FILE": "the tokens of clients, one per line, as NAME: TOKEN or a token alone; a permit of one is invisible to "
    "others; the one named operator, or the only one, may give orders (also: POLITE_SERVE_TOKEN, the operator's)",
    "--name HOST": _repeated("a host name of this server, besides localhost; may be repeated", default=[]),
    "--config FILE": "a TOML file with options in a table [serve]; the command line and POLITE_AGENT and POLITE_DELAY overrule it "
    "(default: POLITE_CONFIG)",
    "--store FILE|URL": "keep robots.txt results in a file between runs, or share them and delays with other machines on a Redis "
    "or Valkey server, as polite fetch --store does",
    "--crawl NAME": "the crawl in a shared --store to join or to begin",
    "--max-hold SECONDS": _seconds(
        "how long a client may hold a permit; then its turn is taken back",
        lambda seconds: PacingPolicy(max_hold=seconds).max_hold,
        "300",
    ),
    "--max-permits NUMBER": _number(
        "limit on permits that wait or are out; of one client half as many if there are several tokens",
        1_000_000,
        default="20000",
    ),
    "--grace SECONDS": _seconds(
        "after a signal: how long to wait for reports of permits that are out",
        partial(number, "--grace", most=3_600.0),
        "30",
    ),
    "--forward NAME": _repeated(
        "a header field of callers, such as Cookie, that /v1/fetch passes on; may be repeated", default=[]
    ),
    **{each: more for each, more in _FETCH.items() if each.split()[0] in _SHARED},
    **_network("limit for one page, and for one robots.txt with its redirects", "; needed"),
    **_OFF,
}


class _Command(NamedTuple):
    """A subcommand: its help, its exit statuses, and its arguments."""

    help: str
    exits: str
    arguments: _Arguments


_DECISIONS = "0 allowed, 1 disallowed, 2 wrong usage or invalid URL, 3 robots.txt unreachable; for several URLs, the highest"
_COMMANDS = {
    "check": _Command(
        "print for each URL whether robots.txt allows it, or a table for many agents",
        _DECISIONS,
        {
            "urls URL": {"help": "a URL; - reads URLs from standard input, one per line", "nargs": "+"},
            "--agents FILE": "print a table for these agents: User-Agent headers, one per line, or * for one that no group names; "
            "- reads standard input (needs polite-crawl[cli], but not with --json)",
            **_JSON,
            **_RULES,
        },
    ),
    "explain": _Command(
        "explain the decision about a URL: rule, age of robots.txt, delay, next turn",
        _DECISIONS,
        {"url URL": "the URL to explain", **_RULES},
    ),
    "lint": _Command(
        "print what is wrong in a robots.txt, by line, and how to correct it",
        "0 no findings, 1 findings, 2 wrong usage, 3 no robots.txt",
        {
            "source FILE|URL": "a file, - for standard input, or any URL of the site",
            "--format": _choice(
                "text (default), json (one object per line), or sarif (one SARIF 2.1.0 document)",
                *("text", "json", "sarif"),
                default="text",
            ),
            "--json": {
                "help": "the same as --format json",
                "action": "store_const",
                "const": "json",
                "dest": "format",
            },
            **_network(),
        },
    ),
    "diff": _Command(
        "print which URLs two robots.txt files decide differently, and for which agents",
        "0 no change, 1 a decision changes, 2 wrong usage or invalid URL",
        {
            "old OLD": "a robots.txt on disk",
            "new NEW": "the robots.txt that replaces it",
            "--urls FILE": {
                "help": "a list of URLs or paths, one per line; - reads standard input",
                "required": True,
            },
            "--agent AGENT": _repeated(
                "a User-Agent header, or * for an agent that no group names; may be repeated (default: all agents that the files "
                "name, and *)",
                type=typed(lambda text: None if text == "*" else UserAgent(text)),
            ),
            **_DIALECT,
            **_JSON,
        },
    ),
    "store": _Command(
        "print or delete what a crawler keeps between runs",
        "0 success, 1 the store has nothing about the origin, 2 wrong usage or unusable store; "
        "POLITE_STORE_USER and POLITE_STORE_PASSWORD are for a URL without credentials",
        _STORE,
    ),
    "hold": _Command(
        "have all requests to some URLs wait, in crawls that run and in those to come, until the pattern is released",
        _ORDER_EXITS,
        {
            **_ORDERED,
            "--until DATE": {"help": "when it ends by itself: 2026-05-01T10:30Z", "type": typed(_until)},
            "--for SPAN": {
                "help": "for how long, instead: 90 (seconds), 30m, 2h or 1d",
                "type": typed(_span),
                "dest": "for_",
            },
            **_OF_WHOM,
        },
    ),
    "forbid": _Command(
        "have no request go to some URLs, until the pattern is released",
        _ORDER_EXITS,
        {**_ORDERED, **_OF_WHOM},
    ),
    "release": _Command("end the orders of a pattern", _ORDER_EXITS, {**_ORDERED, **_OF_WHOM}),
    "drop": _Command(
        "drop tasks of some URLs that wait in frontiers, and those that come within an hour",
        _ORDER_EXITS,
        {**_ORDERED, **_OF_WHOM},
    ),
    "holds": _Command(
        "print the orders that stand: who gave them, when, why, until when", _ORDER_EXITS, _OF_WHOM
    ),
    "fetch": _Command(
        "fetch a list of URLs politely, and write one record per URL",
        "0 a response for each URL, 1 a URL is disallowed, 2 wrong usage or invalid URL, "
        "3 a page or robots.txt is unreachable (with --resume, also if an earlier run left it so), 130 interrupted, "
        "143 terminated; the highest counts",
        _FETCH,
    ),
    "serve": _Command(
        "serve one gate to the programs of a machine, over HTTP with JSON",
        "0 never, 2 wrong usage, or the address or the store cannot be used, 130 interrupted, 143 terminated",
        _SERVE,
    ),
    "sitemaps": _Command(
        "print the URLs that a site's sitemaps name",
        "0 all sitemaps were read, 1 one is disallowed, 2 wrong usage or invalid URL, "
        "3 robots.txt or a sitemap is unreachable, or is not read to its end; the highest counts",
        {
            "url URL": "a site such as https://example.com, or one sitemap",
            # Only to say what is wrong with them.
            "others": {"help": argparse.SUPPRESS, "nargs": "*"},
            **_JSON,
            "--since DATE": {
                "help": "leave out what has not changed since, by its lastmod: 2026-05-01, or 2026-05-01T10:30Z",
                "type": typed(partial(_date, "--since")),
            },
            "--limit NUMBER": _number("limit on URLs", _MOST_LISTED),
            **_network(
                "limit for one robots.txt or one sitemap, with its redirects",
                f"; needed for more than {FEW} files",
            ),
        },
    ),
    "timeline": _Command(
        "draw the requests of a run by origin over time, as SVG on standard output",
        "0 success, 2 wrong usage, or RUN is not a log",
        {
            "log RUN": "a log that polite fetch --log wrote",
            "--rows NUMBER": _number("limit on origins drawn: those with most entries", 1_000, default="50"),
        },
    ),
    "journal": _Command(
        "check that a journal of decisions is unchanged, or show what was known and decided about a URL",
        "0 unchanged or shown, 1 a line or a copy of robots.txt was changed, removed or inserted, 2 wrong usage, "
        "3 the beginning is not there, the last line is cut, or nothing is known about the URL",
        {
            "action verify|show": _choice(
                "check all lines, or show the decisions about URL", "verify", "show"
            ),
            "url URL": {"help": "the URL; for show", "nargs": "?"},
            "file FILE": "the file of --journal, or of open_gate(journal=FILE); those that were rotated are read, too",
            "--at DATE": {
                "help": "show what was decided and known at DATE: 2026-05-01, or 2026-05-01T10:30Z",
                "type": typed(partial(_date, "--at")),
            },
            "--hash HASH": "a hash that was published: one of the lines must have it; for verify",
        },
    ),
    "judge": _Command(
        "serve practice sites on loopback to any crawler, and judge its crawl by what they saw",
        "0 the crawl was polite, 1 it was not, 2 wrong usage, or no request came, 3 it was polite and COMMAND failed",
        {
            "command COMMAND": {
                "help": "after --: a crawler to run; an argument {} becomes the addresses of all sites; without it, until ^C",
                "nargs": "*",
            },
            "--serve": "serve the sites, and print their addresses",
            "--port NUMBER": _number(
                "the port of all sites; 0 for one that is free", 65_535, least=0, default="8031"
            ),
            "--delay SECONDS": _seconds(
                "the delay that the crawler was given; a site's robots.txt may ask for more",
                partial(number, "--delay", most=86_400.0),
                "1",
            ),
            "--agent AGENT": {
                "help": "the crawler's User-Agent header or product token; one site gets a group of rules for it",
                "type": typed(UserAgent),
            },
            "--idle SECONDS": _seconds(
                "end after so long without a request, the command too",
                partial(number, "--idle", most=86_400.0),
                None,
            ),
            "--log FILE": "write the requests to FILE; without --serve, judge those that FILE has",
            "--json": "print one JSON object",
        },
    ),
    "doctor": _Command(
        "check a crawler's User-Agent header, and the page that it names",
        "0 all is well, 1 a warning or a problem, 2 wrong usage, 3 the page was not fetched",
        {
            "agent AGENT": 'the header, such as "ExampleBot/1.0 (+https://example.com/bot)"',
            "--offline": "do not fetch the page",
            **_JSON,
            **_connections("limit for each connection and each read"),
        },
    ),
    "card": _Command(
        "write the key directory and the card of a crawler that signs its requests, or make its key",
        "0 success, 2 wrong usage, or the key cannot be used (needs polite-crawl[sign])",
        _CARD,
    ),
    "mcp": _Command(
        "serve fetch, check and explain to an agent, by the Model Context Protocol on standard input and output",
        "0 the client ended it, 2 wrong usage, or a package is missing (needs polite-crawl[mcp]); "
        "POLITE_SERVE_TOKEN is the token for --gate",
        {
            "--gate URL": "use the gate of a running polite serve, and its options: http://127.0.0.1:8700, or unix:PATH",
            "--journal FILE": _FETCH["--journal FILE"],
            "--delay SECONDS": _FETCH["--delay SECONDS"],
            "--max-bytes OCTETS": _number(
                "limit for one page; the rest is not read", MOST_BYTES, default="1000000"
            ),
            **_network("limit for each connection and each read", "; needed without --gate"),
        },
    ),
    "completion": _Command(
        "print a script with which a shell completes command lines of polite",
        "0 success, 2 wrong usage, or the package shtab is missing (needs polite-crawl[cli])",
        {"shell bash|zsh|fish": _choice("the shell that reads the script", "bash", "zsh", "fish")},
    ),
}
_ALL_EXITS = (
    "0 allowed or success, 1 disallowed or findings, 2 wrong usage, 3 unreachable, 130 interrupted, 141 output closed, "
    "143 terminated; COMMAND --help has those of a command"
)
# Where a subcommand's function is: in the file of its name, or here.
_MODULES = {"explain": "polite.cli.check", "fetch": "polite.cli.fetch.command", "completion": __name__}
_MODULES |= dict.fromkeys(("hold", "forbid", "release", "drop", "holds"), "polite.cli.orders")


def parser() -> argparse.ArgumentParser:
    """Return the parser. Parsed options have the function of the subcommand as `run`."""
    command = _Parser(
        prog="polite", description="May I fetch this URL, and now?", epilog=f"exit status: {_ALL_EXITS}"
    )
    form = " (compiled)" if __compiled__ else ""
    command.add_argument(
        "--version", action="version", version=f"polite {__version__}{form}", help="print the version"
    )
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (text, exits, taken) in _COMMANDS.items():
        added = commands.add_parser(name, help=text, description=text, epilog=f"exit status: {exits}")
        # Imported when it runs: --help and --version need none of them.
        added.set_defaults(run=partial(_run, _MODULES.get(name, f"polite.cli.{name}"), name))
        for each, more in taken.items():
            _add(added, each, more)
    return command


def _run(module: str, name: str, options: argparse.Namespace) -> int:
    return int(getattr(import_module(module), name)(options))


def _add(command: argparse.ArgumentParser, argument: str, more: str | Mapping[str, Any]) -> None:
    name, _, metavar = argument.partition(" ")
    keywords: dict[str, Any] = {"help": more} if isinstance(more, str) else dict(more)
    if metavar:
        keywords["metavar"] = metavar
    elif isinstance(more, str):
        keywords["action"] = "store_true"
    match keywords:
        case {"limits": (least, most)}:
            del keywords["limits"]
            keywords["type"] = typed(partial(whole, name, least=least, most=most))
        case {"seconds": check}:
            del keywords["seconds"]
            keywords["type"] = typed(partial(duration, name, make=check))
    command.add_argument(name, **keywords)


def subcommands(command: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each subcommand and its parser, in the order of --help."""
    # argparse has no public way to them; completers and documentation tools read the same attributes.
    for action in command._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.items()


def arguments(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield what a command takes itself: positional arguments and options that --help shows."""
    for action in command._actions:  # noqa: SLF001
        if action.help is not argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield action


# What an argument takes, by its metavar. Others are words of the user's own, such as a URL: nothing completes them.
# ORIGIN of `polite store` may be left out: then its file stands there.
_FILES = frozenset({"FILE", "FILE|URL", "KEY", "NEW", "OLD", "ORIGIN", "RUN"})
_FOLDERS = frozenset({"DIR"})


def completion(options: argparse.Namespace) -> int:
    """Print the script for a shell. Raises InvalidOption without the package shtab."""
    with needing("polite completion needs the package shtab", "cli"):
        import shtab
    # A parser of its own, since what shtab reads is added to it.
    command = parser()
    for _, subcommand in subcommands(command):
        for action in arguments(subcommand):
            if "--dialect" in action.option_strings:
                action.choices = tuple(BY_NAME)
            elif action.metavar in _FILES or action.metavar in _FOLDERS:
                taken = shtab.FILE if action.metavar in _FILES else shtab.DIRECTORY
                vars(action)["complete"] = taken
    print(shtab.complete(command, options.shell))
    return 0
