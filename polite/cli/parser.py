"""The options of the command line."""

import argparse
from typing import NoReturn, TypeAlias

from polite.cli.exit_codes import Exit
from polite.cli.fetch.options import options
from polite.cli.options import dialects, network, rules, typed, whole
from polite.robots.agent import UserAgent
from polite.version import __version__

_EXITS = (
    "exit status: 0 allowed, 1 disallowed, 2 usage or an invalid URL, 3 robots.txt unreachable; "
    "of several URLs the highest counts"
)

_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> argparse.ArgumentParser:
    """All subcommands; `run` of what it parses is the function that does the work."""
    command = _Parser(prog="polite", description="May I fetch this URL, and now?")
    command.add_argument("--version", action="version", version=f"polite {__version__}")
    commands = command.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _check(commands)
    _explain(commands)
    _lint(commands)
    _diff(commands)
    _store(commands)
    _fetch(commands)
    _timeline(commands)
    _demo(commands)
    return command


def _check(commands: _Commands) -> None:
    text = "whether URLs may be fetched, each answered in its turn"
    check = commands.add_parser("check", help=text, description=text, epilog=_EXITS)
    check.add_argument(
        "urls", nargs="+", metavar="URL", help="or - to read URLs, one a line, from standard input"
    )
    check.add_argument("--json", action="store_true", help="one JSON object a line")
    rules(check)
    check.set_defaults(run=_run_check)


def _explain(commands: _Commands) -> None:
    text = "everything that decides about a URL: the rule, the file's age, the delay, the next turn"
    explain = commands.add_parser("explain", help=text, description=text, epilog=_EXITS)
    explain.add_argument("url", metavar="URL")
    rules(explain)
    explain.set_defaults(run=_run_explain)


def _lint(commands: _Commands) -> None:
    text = "what is wrong in a robots.txt, by line, and what to write instead"
    epilog = "exit status: 0 nothing found, 1 something found, 2 usage, 3 no robots.txt to look at"
    lint = commands.add_parser("lint", help=text, description=text, epilog=epilog)
    lint.add_argument("source", metavar="FILE|URL", help="a file, - for standard input, or a URL of the site")
    lint.add_argument(
        "--format",
        choices=("text", "json", "sarif"),
        default="text",
        help="lines to read (default), one JSON object a line, or one SARIF 2.1.0 document",
    )
    lint.add_argument(
        "--json", action="store_const", const="json", dest="format", help="the same as --format json"
    )
    network(lint)
    lint.set_defaults(run=_run_lint)


def _diff(commands: _Commands) -> None:
    text = "which URLs two robots.txt decide differently, and for whom"
    epilog = "exit status: 0 no change, 1 a verdict changes, 2 usage or an invalid URL"
    diff = commands.add_parser("diff", help=text, description=text, epilog=epilog)
    diff.add_argument("old", metavar="OLD", help="a robots.txt on disk")
    diff.add_argument("new", metavar="NEW", help="the one that is to replace it")
    diff.add_argument(
        "--urls",
        required=True,
        metavar="FILE",
        help="URLs or paths, one a line; - reads them from standard input",
    )
    diff.add_argument(
        "--agent",
        action="append",
        type=typed(lambda text: None if text == "*" else UserAgent(text)),
        help="a User-Agent header, or * for one that no group names, as often as needed "
        "(default: all that are named in one of the files, and *)",
    )
    dialects(diff)
    diff.add_argument("--json", action="store_true", help="one JSON object a line")
    diff.set_defaults(run=_run_diff)


def _store(commands: _Commands) -> None:
    text = "look into the file in which a crawler keeps what it knows between runs"
    epilog = (
        "exit status: 0 done, 1 the file knows nothing of the origin, 2 usage, or a file that cannot be used"
    )
    store = commands.add_parser("store", help=text, description=text, epilog=epilog)
    store.add_argument(
        "action",
        choices=("ls", "show", "purge"),
        metavar="ls|show|purge",
        help="list the origins, show all that is known of one, or forget",
    )
    store.add_argument(
        "origin", nargs="?", metavar="ORIGIN", help="any URL of it; for show, and for purge of one"
    )
    store.add_argument("file", metavar="FILE", help="the store")
    store.add_argument(
        "--expired", action="store_true", help="purge only what would be asked for again anyway"
    )
    store.add_argument(
        "--back-offs", action="store_true", help="purge back-offs that still run, too: they are kept else"
    )
    store.add_argument("--json", action="store_true", help="one JSON object a line")
    store.set_defaults(run=_run_store)


def _fetch(commands: _Commands) -> None:
    text = "fetch a list of URLs politely, and write down what became of each"
    epilog = (
        "exit status: 0 an answer for each URL, 1 one is disallowed, 2 usage or an invalid URL, 3 one is out of reach, "
        "130 interrupted, 143 terminated; the highest counts"
    )
    fetch = commands.add_parser("fetch", help=text, description=text, epilog=epilog)
    fetch.add_argument(
        "urls", nargs="*", metavar="URL", help="or - to read URLs, one a line, from standard input"
    )
    options(fetch)
    fetch.set_defaults(run=_run_fetch)


def _timeline(commands: _Commands) -> None:
    text = "draw a run: the requests of each origin over time, as SVG on standard output"
    timeline = commands.add_parser("timeline", help=text, description=text)
    timeline.add_argument("log", metavar="RUN", help="what polite fetch --log has written")
    timeline.add_argument(
        "--rows",
        type=typed(lambda text: whole("--rows", text, most=1_000)),
        default="50",
        metavar="NUMBER",
        help="origins that are drawn, those with the most requests (default: %(default)s)",
    )
    timeline.set_defaults(run=_run_timeline)


def _demo(commands: _Commands) -> None:
    text = "crawl sixteen virtual hosts on loopback, and judge by the servers' log"
    epilog = "exit status: 0 a polite crawl, 1 an impolite one"
    demo = commands.add_parser("demo", help=text, description=text, epilog=epilog)
    demo.add_argument(
        "--timeline", metavar="FILE", help="draw the requests of each host over time into FILE, as SVG"
    )
    demo.set_defaults(run=_run_demo)


# The subcommands are imported when they run: --help and --version need none of them.
def _run_check(options: argparse.Namespace) -> int:
    from polite.cli.check import check

    return check(options)


def _run_explain(options: argparse.Namespace) -> int:
    from polite.cli.explain import explain

    return explain(options)


def _run_lint(options: argparse.Namespace) -> int:
    from polite.cli.lint import lint

    return lint(options)


def _run_diff(options: argparse.Namespace) -> int:
    from polite.cli.diff import diff

    return diff(options)


def _run_store(options: argparse.Namespace) -> int:
    from polite.cli.store import store

    return store(options)


def _run_fetch(options: argparse.Namespace) -> int:
    from polite.cli.fetch.command import fetch

    return fetch(options)


def _run_timeline(options: argparse.Namespace) -> int:
    from polite.cli.timeline.run import timeline

    return timeline(options)


def _run_demo(options: argparse.Namespace) -> int:
    from polite.cli.demo.run import demo

    return demo(options)
