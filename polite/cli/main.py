"""The `polite` command: runs a subcommand, and prints an expected error as one line."""

import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from polite.cli.configuration import parse
from polite.cli.exit_codes import Exit
from polite.cli.option_names import command_line_text
from polite.errors import PoliteError


class _CommandLineFormatter(logging.Formatter):
    """Formats warnings in terms of the command line."""

    def format(self, record: logging.LogRecord) -> str:
        return command_line_text(super().format(record))


def program() -> NoReturn:
    """Run the command as a process. A signal after the end does not change the exit status."""
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
        print("polite: interrupted", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except (PoliteError, OSError, ExceptionGroup) as error:
        return int(_report(_first(error)))


def _first(error: Exception) -> Exception:
    """Return the first error of a task group: the other tasks were cancelled because of it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _report(error: Exception) -> Exit:
    """Print one line about an expected error. Anything else is a defect, and raised again."""
    match error:
        case BrokenPipeError():
            return Exit.OUTPUT_CLOSED
        case OSError(filename=str(name), strerror=str(reason)):
            print(f"polite: {name}: {reason}", file=sys.stderr)
        case OSError() | PoliteError():
            print(f"polite: {command_line_text(str(error))}", file=sys.stderr)
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
