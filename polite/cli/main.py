"""The command line: its options, and which subcommand does the work."""

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from polite.cli.exits import Exit
from polite.errors import PoliteError
from polite.version import __version__

DEFAULT_AGENT = f"polite-cli/{__version__}"
_EXITS = (
    "exit status: 0 allowed, 1 disallowed, 2 usage, 3 robots.txt unreachable; the gravest of all URLs counts"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; gives the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except PoliteError as error:
        print(f"polite: {error}", file=sys.stderr)
    except OSError as error:
        print(f"polite: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("polite: interrupted", file=sys.stderr)
    return int(Exit.USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="polite", description="May I fetch this URL, and now?")
    parser.add_argument("--version", action="version", version=f"polite {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _check(commands)
    _explain(commands)
    _lint(commands)
    demo = commands.add_parser(
        "demo", help="crawl sixteen virtual hosts on loopback, and judge by the servers' log"
    )
    demo.set_defaults(run=_run_demo)
    return parser


def _check(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    check = commands.add_parser("check", help="whether URLs may be fetched", epilog=_EXITS)
    check.add_argument(
        "urls", nargs="+", metavar="URL", help="or - to read URLs, one a line, from standard input"
    )
    check.add_argument("--json", action="store_true", help="one JSON object a line")
    _common(check)
    check.set_defaults(run=_run_check)


def _explain(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explain = commands.add_parser("explain", help="everything that decides about a URL", epilog=_EXITS)
    explain.add_argument("url", metavar="URL")
    _common(explain)
    explain.set_defaults(run=_run_explain)


def _lint(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    lint = commands.add_parser(
        "lint",
        help="what is wrong in a robots.txt",
        epilog="exit status: 0 nothing found, 1 something found, 2 usage, 3 robots.txt unreachable",
    )
    lint.add_argument("source", metavar="FILE|URL", help="a file, - for standard input, or a URL of the site")
    lint.add_argument("--json", action="store_true", help="one JSON object a line")
    _network(lint)
    lint.set_defaults(run=_run_lint)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--robots",
        metavar="FILE",
        help="decide by the rules in FILE, whatever the site has; nothing is fetched",
    )
    _network(parser)


def _network(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", default=DEFAULT_AGENT, help="the User-Agent header (default: %(default)s)")
    parser.add_argument(
        "--dialect", default="rfc9309", help="classic, google-2010, google-2019, rfc9309 (default) or google"
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=30.0, help="seconds for one robots.txt (default: 30)"
    )
    parser.add_argument("--allow-private", action="store_true", help="ask servers on private addresses too")


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        _refuse(f"{text!r} is no number of seconds")


def _refuse(message: str) -> NoReturn:
    raise argparse.ArgumentTypeError(message)


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


def _run_demo(_: argparse.Namespace) -> int:
    from polite.cli.demo.run import demo

    return demo()
