"""Declares the subcommands, and the options of those that have few."""

import argparse
from collections.abc import Callable
from datetime import datetime
from typing import NoReturn, TypeAlias

from polite.cli.fetch.options import add_fetch_options
from polite.cli.options import (
    FEW,
    add_card_options,
    add_connections,
    add_dialect,
    add_format,
    add_json,
    add_matrix_options,
    add_network,
    add_number,
    add_rules,
    add_store_options,
    typed,
)
from polite.robots.agent import UserAgent
from polite.version import __compiled__, __version__

_EXITS = (
    "exit status: 0 allowed, 1 disallowed, 2 wrong usage or invalid URL, 3 robots.txt unreachable; "
    "for several URLs, the highest"
)

_ALL_EXITS = (
    "exit status: 0 allowed or success, 1 disallowed or findings, 2 wrong usage, 3 unreachable, 130 interrupted, "
    "141 output closed, 143 terminated; COMMAND --help has those of a command"
)

_AddCommand: TypeAlias = Callable[..., argparse.ArgumentParser]


class WrongUsage(Exception):
    """A command line is wrong.

    Attributes:
        message: what is wrong.
        program: the command whose `--help` tells more, such as `polite fetch`.
    """

    def __init__(self, message: str, program: str) -> None:
        super().__init__(message)
        self.message = message
        self.program = program


class _Parser(argparse.ArgumentParser):
    """Raises a usage error: what it is printed with depends on where the arguments are from."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(message, self.prog)


def parser() -> argparse.ArgumentParser:
    """Return the parser. Parsed options have the function of the subcommand as `run`."""
    command = _Parser(prog="polite", description="May I fetch this URL, and now?", epilog=_ALL_EXITS)
    form = " (compiled)" if __compiled__ else ""
    command.add_argument(
        "--version", action="version", version=f"polite {__version__}{form}", help="print the version"
    )
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_check(commands.add_parser)
    _add_explain(commands.add_parser)
    _add_lint(commands.add_parser)
    _add_diff(commands.add_parser)
    _add_matrix(commands.add_parser)
    _add_store(commands.add_parser)
    _add_fetch(commands.add_parser)
    _add_sitemaps(commands.add_parser)
    _add_timeline(commands.add_parser)
    _add_doctor(commands.add_parser)
    _add_card(commands.add_parser)
    _add_completion(commands.add_parser)
    return command


def _add_check(add_command: _AddCommand) -> None:
    text = "print for each URL whether robots.txt allows it"
    check = add_command("check", help=text, description=text, epilog=_EXITS)
    check.add_argument(
        "urls", nargs="+", metavar="URL", help="a URL; - reads URLs from standard input, one per line"
    )
    add_json(check)
    add_rules(check)
    check.set_defaults(run=_run_check)


def _add_explain(add_command: _AddCommand) -> None:
    text = "explain the decision about a URL: rule, age of robots.txt, delay, next turn"
    explain = add_command("explain", help=text, description=text, epilog=_EXITS)
    explain.add_argument("url", metavar="URL", help="the URL to explain")
    add_rules(explain)
    explain.set_defaults(run=_run_explain)


def _add_lint(add_command: _AddCommand) -> None:
    text = "print what is wrong in a robots.txt, by line, and how to correct it"
    epilog = "exit status: 0 no findings, 1 findings, 2 wrong usage, 3 no robots.txt"
    lint = add_command("lint", help=text, description=text, epilog=epilog)
    lint.add_argument(
        "source", metavar="FILE|URL", help="a file, - for standard input, or any URL of the site"
    )
    add_format(
        lint,
        ("text", "json", "sarif"),
        "text (default), json (one object per line), or sarif (one SARIF 2.1.0 document)",
    )
    add_network(lint)
    lint.set_defaults(run=_run_lint)


def _add_diff(add_command: _AddCommand) -> None:
    text = "print which URLs two robots.txt files decide differently, and for which agents"
    epilog = "exit status: 0 no change, 1 a decision changes, 2 wrong usage or invalid URL"
    diff = add_command("diff", help=text, description=text, epilog=epilog)
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
    diff.set_defaults(run=_run_diff)


def _add_matrix(add_command: _AddCommand) -> None:
    text = "print which of many URLs which of many agents may fetch, as a table"
    epilog = (
        "exit status: 0 all is allowed, 1 a URL is disallowed for an agent, 2 wrong usage or an invalid line, "
        "3 robots.txt unreachable; the highest counts"
    )
    matrix = add_command("matrix", help=text, description=text, epilog=epilog)
    add_matrix_options(matrix)
    matrix.set_defaults(run=_run_matrix)


def _add_store(add_command: _AddCommand) -> None:
    text = "print or delete what a crawler keeps between runs"
    epilog = (
        "exit status: 0 success, 1 the store has nothing about the origin, 2 wrong usage or unusable store; "
        "POLITE_STORE_USER and POLITE_STORE_PASSWORD are for a URL without credentials"
    )
    store = add_command("store", help=text, description=text, epilog=epilog)
    add_store_options(store)
    store.set_defaults(run=_run_store)


def _add_fetch(add_command: _AddCommand) -> None:
    text = "fetch a list of URLs politely, and write one record per URL"
    epilog = (
        "exit status: 0 a response for each URL, 1 a URL is disallowed, 2 wrong usage or invalid URL, "
        "3 a page or robots.txt is unreachable (with --resume, also if an earlier run left it so), 130 interrupted, "
        "143 terminated; the highest counts"
    )
    fetch = add_command("fetch", help=text, description=text, epilog=epilog)
    fetch.add_argument(
        "urls", nargs="*", metavar="URL", help="a URL; - reads URLs from standard input, one per line"
    )
    add_fetch_options(fetch)
    fetch.set_defaults(run=_run_fetch)


def _add_sitemaps(add_command: _AddCommand) -> None:
    text = "print the URLs that a site's sitemaps name"
    epilog = (
        "exit status: 0 all sitemaps were read, 1 one is disallowed, 2 wrong usage or invalid URL, "
        "3 robots.txt or a sitemap is unreachable, or is not read to its end; the highest counts"
    )
    sitemaps = add_command("sitemaps", help=text, description=text, epilog=epilog)
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
    sitemaps.set_defaults(run=_run_sitemaps)


def _add_timeline(add_command: _AddCommand) -> None:
    text = "draw the requests of a run by origin over time, as SVG on standard output"
    epilog = "exit status: 0 success, 2 wrong usage, or RUN is not a log"
    timeline = add_command("timeline", help=text, description=text, epilog=epilog)
    timeline.add_argument("log", metavar="RUN", help="a log that polite fetch --log wrote")
    add_number(
        timeline,
        "--rows",
        "limit on origins drawn, those with the most entries (default: %(default)s)",
        most=1_000,
        default="50",
    )
    timeline.set_defaults(run=_run_timeline)


def _add_doctor(add_command: _AddCommand) -> None:
    text = "check a crawler's User-Agent header, and the page that it names"
    epilog = "exit status: 0 all is well, 1 a warning or a problem, 2 wrong usage, 3 the page was not fetched"
    doctor = add_command("doctor", help=text, description=text, epilog=epilog)
    doctor.add_argument(
        "agent", metavar="AGENT", help='the header, such as "ExampleBot/1.0 (+https://example.com/bot)"'
    )
    doctor.add_argument("--offline", action="store_true", help="do not fetch the page")
    add_json(doctor)
    add_connections(doctor, timeout="limit for each connection and each read")
    doctor.set_defaults(run=_run_doctor)


def _add_card(add_command: _AddCommand) -> None:
    text = "write the key directory and the card of a crawler that signs its requests, or make its key"
    epilog = "exit status: 0 success, 2 wrong usage, or the key cannot be used (needs polite-crawl[sign])"
    card = add_command("card", help=text, description=text, epilog=epilog)
    add_card_options(card)
    card.set_defaults(run=_run_card)


def _add_completion(add_command: _AddCommand) -> None:
    text = "print a script with which a shell completes command lines of polite"
    epilog = (
        "exit status: 0 success, 2 wrong usage, or the package shtab is missing (needs polite-crawl[cli])"
    )
    completion = add_command("completion", help=text, description=text, epilog=epilog)
    completion.add_argument(
        "shell",
        choices=("bash", "zsh", "fish"),
        metavar="bash|zsh|fish",
        help="the shell that reads the script",
    )
    completion.set_defaults(run=_run_completion)


# Subcommands are imported when they run: --help and --version need none of them.
def _run_check(options: argparse.Namespace) -> int:
    from polite.cli.check import check

    return check(options)


def _run_explain(options: argparse.Namespace) -> int:
    from polite.cli.check import explain

    return explain(options)


def _run_lint(options: argparse.Namespace) -> int:
    from polite.cli.lint import lint

    return lint(options)


def _run_diff(options: argparse.Namespace) -> int:
    from polite.cli.diff import diff

    return diff(options)


def _run_matrix(options: argparse.Namespace) -> int:
    from polite.cli.matrix import matrix

    return matrix(options)


def _run_store(options: argparse.Namespace) -> int:
    from polite.cli.store.command import store

    return store(options)


def _run_fetch(options: argparse.Namespace) -> int:
    from polite.cli.fetch.command import fetch

    return fetch(options)


def _since(text: str) -> datetime:
    from polite.cli.sitemaps import date

    return date(text)


def _run_sitemaps(options: argparse.Namespace) -> int:
    from polite.cli.sitemaps import sitemaps

    return sitemaps(options)


def _run_timeline(options: argparse.Namespace) -> int:
    from polite.cli.timeline import timeline

    return timeline(options)


def _run_doctor(options: argparse.Namespace) -> int:
    from polite.cli.doctor import doctor

    return doctor(options)


def _run_card(options: argparse.Namespace) -> int:
    from polite.cli.card import card

    return card(options)


def _run_completion(options: argparse.Namespace) -> int:
    from polite.cli.completion import completion

    return completion(options)
