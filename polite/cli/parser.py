"""Declares the subcommands, and the options of those that have few; prints the script with which a shell completes them."""

import argparse
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import NoReturn, TypeAlias

from polite.cli.fetch.options import add_fetch_options
from polite.cli.options import (
    FEW,
    add_card_options,
    add_connections,
    add_dialect,
    add_json,
    add_network,
    add_number,
    add_rules,
    add_store_options,
    typed,
)
from polite.errors import InvalidOption
from polite.robots.agent import UserAgent
from polite.robots.dialect import BY_NAME
from polite.version import __compiled__, __version__

_EXITS = (
    "exit status: 0 allowed, 1 disallowed, 2 wrong usage or invalid URL, 3 robots.txt unreachable; "
    "for several URLs, the highest"
)

_ALL_EXITS = (
    "exit status: 0 allowed or success, 1 disallowed or findings, 2 wrong usage, 3 unreachable, 130 interrupted, "
    "141 output closed, 143 terminated; COMMAND --help has those of a command"
)

_Add: TypeAlias = Callable[[str, str, str], argparse.ArgumentParser]

# Where a subcommand's function is: in the file of its name, or here.
_MODULES = {"explain": "polite.cli.check", "fetch": "polite.cli.fetch.command", "completion": __name__}


class WrongUsage(Exception):
    """A command line is wrong. The message names the command whose `--help` tells more."""


class _Parser(argparse.ArgumentParser):
    """Raises a usage error: what it is printed with depends on where the arguments are from."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """Return the parser. Parsed options have the function of the subcommand as `run`."""
    command = _Parser(prog="polite", description="May I fetch this URL, and now?", epilog=_ALL_EXITS)
    form = " (compiled)" if __compiled__ else ""
    command.add_argument(
        "--version", action="version", version=f"polite {__version__}{form}", help="print the version"
    )
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, text: str, epilog: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, epilog=epilog)
        # Imported when it runs: --help and --version need none of them.
        module = _MODULES.get(name, f"polite.cli.{name}")
        added.set_defaults(run=partial(_run, module, name))
        return added

    for add_one in (
        _add_check,
        _add_explain,
        _add_lint,
        _add_diff,
        _add_store,
        _add_fetch,
        _add_sitemaps,
        _add_timeline,
        _add_doctor,
        _add_card,
        _add_completion,
    ):
        add_one(add)
    return command


def _run(module: str, name: str, options: argparse.Namespace) -> int:
    return int(getattr(import_module(module), name)(options))


def _add_check(add: _Add) -> None:
    text = "print for each URL whether robots.txt allows it, or a table for many agents"
    check = add("check", text, _EXITS)
    check.add_argument(
        "urls", nargs="+", metavar="URL", help="a URL; - reads URLs from standard input, one per line"
    )
    check.add_argument(
        "--agents",
        metavar="FILE",
        help="print a table for these agents: User-Agent headers, one per line, or * for one that no group names; "
        "- reads standard input (needs polite-crawl[cli], but not with --json)",
    )
    add_json(check)
    add_rules(check)


def _add_explain(add: _Add) -> None:
    text = "explain the decision about a URL: rule, age of robots.txt, delay, next turn"
    explain = add("explain", text, _EXITS)
    explain.add_argument("url", metavar="URL", help="the URL to explain")
    add_rules(explain)


def _add_lint(add: _Add) -> None:
    text = "print what is wrong in a robots.txt, by line, and how to correct it"
    epilog = "exit status: 0 no findings, 1 findings, 2 wrong usage, 3 no robots.txt"
    lint = add("lint", text, epilog)
    lint.add_argument(
        "source", metavar="FILE|URL", help="a file, - for standard input, or any URL of the site"
    )
    formats = "text (default), json (one object per line), or sarif (one SARIF 2.1.0 document)"
    lint.add_argument("--format", choices=("text", "json", "sarif"), default="text", help=formats)
    lint.add_argument(
        "--json", action="store_const", const="json", dest="format", help="the same as --format json"
    )
    add_network(lint)


def _add_diff(add: _Add) -> None:
    text = "print which URLs two robots.txt files decide differently, and for which agents"
    epilog = "exit status: 0 no change, 1 a decision changes, 2 wrong usage or invalid URL"
    diff = add("diff", text, epilog)
    diff.add_argument("old", metavar="OLD", help="a robots.txt on disk")
    diff.add_argument("new", metavar="NEW", help="the robots.txt that replaces it")
    diff.add_argument(
        "--urls",
        required=True,
        metavar="FILE",
        help="a list of URLs or paths, one per line; - reads standard input",
    )
    diff.add_argument(
        "--agent",
        action="append",
        type=typed(lambda text: None if text == "*" else UserAgent(text)),
        help="a User-Agent header, or * for an agent that no group names; may be repeated "
        "(default: all agents that the files name, and *)",
    )
    add_dialect(diff)
    add_json(diff)


def _add_store(add: _Add) -> None:
    text = "print or delete what a crawler keeps between runs"
    epilog = (
        "exit status: 0 success, 1 the store has nothing about the origin, 2 wrong usage or unusable store; "
        "POLITE_STORE_USER and POLITE_STORE_PASSWORD are for a URL without credentials"
    )
    store = add("store", text, epilog)
    add_store_options(store)


def _add_fetch(add: _Add) -> None:
    text = "fetch a list of URLs politely, and write one record per URL"
    epilog = (
        "exit status: 0 a response for each URL, 1 a URL is disallowed, 2 wrong usage or invalid URL, "
        "3 a page or robots.txt is unreachable (with --resume, also if an earlier run left it so), 130 interrupted, "
        "143 terminated; the highest counts"
    )
    fetch = add("fetch", text, epilog)
    fetch.add_argument(
        "urls", nargs="*", metavar="URL", help="a URL; - reads URLs from standard input, one per line"
    )
    add_fetch_options(fetch)


def _add_sitemaps(add: _Add) -> None:
    text = "print the URLs that a site's sitemaps name"
    epilog = (
        "exit status: 0 all sitemaps were read, 1 one is disallowed, 2 wrong usage or invalid URL, "
        "3 robots.txt or a sitemap is unreachable, or is not read to its end; the highest counts"
    )
    sitemaps = add("sitemaps", text, epilog)
    sitemaps.add_argument("url", metavar="URL", help="a site such as https://example.com, or one sitemap")
    # Only to say what is wrong with them.
    sitemaps.add_argument("others", nargs="*", help=argparse.SUPPRESS)
    add_json(sitemaps)
    sitemaps.add_argument(
        "--since",
        type=typed(_since),
        metavar="DATE",
        help="leave out what has not changed since, by its lastmod: 2026-05-01, or 2026-05-01T10:30Z",
    )
    add_number(sitemaps, "--limit", "limit on URLs", most=1_000_000_000)
    timeout = "limit for one robots.txt or one sitemap, with its redirects"
    add_network(sitemaps, timeout=timeout, few=f"{FEW} files")


def _add_timeline(add: _Add) -> None:
    text = "draw the requests of a run by origin over time, as SVG on standard output"
    epilog = "exit status: 0 success, 2 wrong usage, or RUN is not a log"
    timeline = add("timeline", text, epilog)
    timeline.add_argument("log", metavar="RUN", help="a log that polite fetch --log wrote")
    add_number(
        timeline,
        "--rows",
        "limit on origins drawn, those with the most entries (default: %(default)s)",
        most=1_000,
        default="50",
    )


def _add_doctor(add: _Add) -> None:
    text = "check a crawler's User-Agent header, and the page that it names"
    epilog = "exit status: 0 all is well, 1 a warning or a problem, 2 wrong usage, 3 the page was not fetched"
    doctor = add("doctor", text, epilog)
    doctor.add_argument(
        "agent", metavar="AGENT", help='the header, such as "ExampleBot/1.0 (+https://example.com/bot)"'
    )
    doctor.add_argument("--offline", action="store_true", help="do not fetch the page")
    add_json(doctor)
    add_connections(doctor, timeout="limit for each connection and each read")


def _add_card(add: _Add) -> None:
    text = "write the key directory and the card of a crawler that signs its requests, or make its key"
    epilog = "exit status: 0 success, 2 wrong usage, or the key cannot be used (needs polite-crawl[sign])"
    card = add("card", text, epilog)
    add_card_options(card)


def _add_completion(add: _Add) -> None:
    text = "print a script with which a shell completes command lines of polite"
    epilog = (
        "exit status: 0 success, 2 wrong usage, or the package shtab is missing (needs polite-crawl[cli])"
    )
    completion = add("completion", text, epilog)
    completion.add_argument(
        "shell",
        choices=("bash", "zsh", "fish"),
        metavar="bash|zsh|fish",
        help="the shell that reads the script",
    )


def _since(text: str) -> datetime:
    from polite.sitemaps.entry import parse_date

    found, _ = parse_date(text.strip())
    if found is None:
        raise InvalidOption(f"--since must be a date such as 2026-05-01 or 2026-05-01T10:30Z, got {text!r}")
    return found


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
    try:
        import shtab
    except ImportError as error:
        raise InvalidOption(
            "polite completion needs the package shtab: pip install 'polite-crawl[cli]'"
        ) from error
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
