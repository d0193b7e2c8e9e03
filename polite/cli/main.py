"""The `polite` command: runs a subcommand, and prints an expected error as one line."""

import argparse
import gc
import io
import logging
import os
import re
import signal
import sys
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from polite.cli.options import SWITCHED_OFF
from polite.cli.parser import WrongUsage, parser
from polite.cli.terminal import Exit, complain, message_of, spelled
from polite.errors import InvalidOption, PoliteError

_OF_ONE_AGENT = frozenset({"card", "check", "explain", "fetch", "lint", "mcp", "serve", "sitemaps"})
# Commands with a configuration file, whose tables have their names.
_CONFIGURED = frozenset({"fetch", "serve"})
# Variables, the option that each stands for, and the commands that have it.
ENVIRONMENT = {
    "POLITE_AGENT": ("--agent", _OF_ONE_AGENT),
    "POLITE_DELAY": ("--delay", _CONFIGURED),
    "POLITE_CONFIG": ("--config", _CONFIGURED),
}
# What a file may not set: itself, and what is no option.
_NOT_IN_FILES = frozenset({"change", "config", "urls", "run"})
# Octets. A configuration has some lines; a device has no end.
_LARGEST = 1 << 20
_LINE = re.compile(r" \(at line (\d+), column \d+\)")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line, with those of its environment, configuration file, and queue that it continues.

    Ends the program with one line if they are wrong: `SystemExit`. Raises InvalidOption for a file that is no configuration or
    a queue with other options, and OSError for a file that cannot be read.
    """
    # First alone: what is wrong in it is not the fault of the others.
    options = _parsed(arguments)
    command = arguments[0]
    # An empty variable counts as not set.
    environment = {
        name: f"{option}={value}"
        for name, (option, commands) in ENVIRONMENT.items()
        if command in commands and (value := os.environ.get(name))
    }
    for name, argument in environment.items():
        _parsed([command, argument, *arguments[1:]], source=f"{name}: ")
    given = [*environment.values(), *arguments[1:]]
    if environment:
        options = _parsed([command, *given])
    if (file := getattr(options, "config", None)) is not None:
        configured = _file_arguments(file, command)
        for argument in configured:
            _parsed([command, argument, *arguments[1:]], source=f"{file}: ")
        given = [*configured, *given]
        options = _parsed([command, *given])
    if getattr(options, "resume", None) is None:
        return options
    from polite.cli.fetch import queue_file

    kept = queue_file.read(options)
    if kept is not None:
        before = list(queue_file.arguments(kept, options))
        options = _parsed([command, *before, *given], source=f"{options.resume}: ")
        if not options.change:
            queue_file.require_same(kept, options)
    options.kept = kept
    return options


def _parsed(arguments: Sequence[str], *, source: str = "") -> argparse.Namespace:
    try:
        return parser().parse_args(arguments)
    except WrongUsage as wrong:
        complain(f"{source}{wrong}")
        raise SystemExit(Exit.USAGE) from None


def _file_arguments(file: str, command: str) -> list[str]:
    """Return the arguments that a file stands for: its table of the command. Raises InvalidOption, OSError."""
    if Path(file).is_dir():
        raise InvalidOption(f"--config {file} is a folder; name a file in it")
    try:
        with Path(file).open("rb") as stream:
            octets = stream.read(_LARGEST + 1)
    except OSError as error:
        raise InvalidOption(f"--config {file}: {error.strerror or error}") from error
    if len(octets) > _LARGEST:
        raise InvalidOption(f"--config {file}: a configuration has at most {_LARGEST} octets")
    try:
        tables = tomllib.loads(octets.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = octets.count(b"\n", 0, error.start) + 1
        raise InvalidOption(f"{file}:{line}: it is not UTF-8") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # As compilers name a place; without one, it is the end of the file.
        found = _LINE.search(str(error))
        line = octets.count(b"\n") + 1 if found is None else int(found[1])
        raise InvalidOption(f"{file}:{line}: {_LINE.sub('', str(error))}") from error
    options = tables.pop(command, {})
    others = tables.keys() - _CONFIGURED
    if others or not isinstance(options, dict):
        name = next((name for name in tables if name in others), command)
        raise InvalidOption(
            f"{file}: {name!r} is not known; options of polite {command} are in a table [{command}]"
        )
    defaults = {name.replace("_", "-"): value for name, value in vars(_parsed([command])).items()}
    known = {name: isinstance(value, bool) for name, value in defaults.items() if name not in _NOT_IN_FILES}
    return [
        argument
        for name, value in options.items()
        for argument in _arguments_of(file, command, name, value, known)
    ]


def _arguments_of(file: str, command: str, name: str, value: object, known: Mapping[str, bool]) -> list[str]:
    """Return the arguments for one option. `known` says of each name whether it is a switch. Raises InvalidOption."""
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InvalidOption(f"{file}: polite {command} has no option --{name}{hint}")
    match value:
        case bool() if known[name]:
            # A queue that is continued may have it on.
            off = [f"--no-{name}"] if name in SWITCHED_OFF else []
            return [f"--{name}"] if value else off
        case _ if known[name]:
            needed = f"is a switch: it must be true or false, got {value!r:.100}"
        case bool():
            needed = f"is no switch: it must have a value, got {str(value).lower()}"
        case str() | int() | float():
            return [f"--{name}={value}"]
        case [*items] if all(isinstance(item, str) for item in items):
            return [f"--{name}={item}" for item in items]
        case _:
            kinds: dict[type, str] = {list: "an array of other values", dict: "a table"}
            kind = kinds.get(type(value), f"a {type(value).__name__}")
            needed = f"must be a string, a number, true, false or an array of strings, got {kind}"
    raise InvalidOption(f"{file}: {name} {needed}")


class _CommandLineFormatter(logging.Formatter):
    """Formats warnings in terms of the command line."""

    def format(self, record: logging.LogRecord) -> str:
        return spelled(super().format(record))


def program() -> NoReturn:
    """Run the command as a process. A signal after the end does not change the exit status."""
    # With Python's default, looking for garbage takes a third of the CPU of a long list.
    gc.set_threshold(100_000, 10, 100)
    signal.signal(signal.SIGTERM, _terminate)
    status = main()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def _terminate(*_: object) -> NoReturn:
    """Exit like ^C, through each `finally`."""
    raise SystemExit(int(Exit.TERMINATED))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit status. `--help`, `--version` and wrong usage raise SystemExit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Escape characters that the terminal's encoding lacks: a foreign URL must not fail the command.
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:  # warnings go to standard error if logging is not configured
        logging.lastResort.setFormatter(_CommandLineFormatter())
    try:
        try:
            options = parse(sys.argv[1:] if arguments is None else arguments)
            return int(options.run(options))
        finally:
            _flush()
    except KeyboardInterrupt:
        complain("interrupted")
        return int(Exit.INTERRUPTED)
    except (PoliteError, OSError, ExceptionGroup) as error:
        return int(_report(error))


def _report(error: Exception) -> Exit:
    """Print one line about an expected error. Anything else is a defect, and raised again."""
    match error:
        case ExceptionGroup():
            # Of a task group: the other tasks were cancelled because of the first error.
            return _report(error.exceptions[0])
        case BrokenPipeError():
            return Exit.OUTPUT_CLOSED
        case OSError(filename=str(name), strerror=str(reason)):
            complain(f"{name}: {reason}")
        case OSError() | PoliteError():
            complain(message_of(error))
        case _:
            raise error
    return Exit.USAGE


def _flush() -> None:
    """Flush standard output. On OSError drop the rest, or the interpreter would report the error again at exit."""
    if sys.stdout is None:  # closed from the start, as by `>&-`
        return
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        raise
