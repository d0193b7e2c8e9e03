"""The `polite` command: runs a subcommand, and says in one line what it could not go on with."""

import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from polite.cli.exit_codes import Exit
from polite.cli.options import spoken
from polite.cli.parser import parser
from polite.errors import PoliteError


class _Spoken(logging.Formatter):
    """Warnings that name options, in words of the command line."""

    def format(self, record: logging.LogRecord) -> str:
        return spoken(super().format(record))


def program() -> NoReturn:
    """The command as a process of its own. A signal that comes once all is done changes the exit status no more."""
    signal.signal(signal.SIGTERM, _terminated)
    status = main()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def _terminated(*_: object) -> NoReturn:
    """End as ^C does, through each `finally`."""
    raise SystemExit(int(Exit.TERMINATED))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; gives the exit status. `--help`, `--version` and a wrong option raise SystemExit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What the terminal's encoding lacks is shown escaped: a foreign URL is no reason to fail.
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:  # where nobody has said how to log, warnings go to standard error
        logging.lastResort.setFormatter(_Spoken())
    try:
        try:
            options = parser().parse_args(arguments)
            return int(options.run(options))
        finally:
            _flush()
    except KeyboardInterrupt:
        print("polite: interrupted", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except (PoliteError, OSError, ExceptionGroup) as error:
        return int(_told(_first(error)))


def _first(error: Exception) -> Exception:
    """What went wrong in a group of tasks: the others were cancelled because of it."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: Exception) -> Exit:
    """One line about what nobody here can go on with; a defect of ours stays what it is."""
    match error:
        case BrokenPipeError():
            return Exit.CUT_OFF
        case OSError(filename=str(name), strerror=str(reason)):
            print(f"polite: {name}: {reason}", file=sys.stderr)
        case OSError() | PoliteError():
            print(f"polite: {error}", file=sys.stderr)
        case _:
            raise error
    return Exit.USAGE


def _flush() -> None:
    """Raises OSError when nobody takes the output; what is left is dropped, or the interpreter's end would complain too."""
    if sys.stdout is None:  # closed from the start, as by `>&-`
        return
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        raise
