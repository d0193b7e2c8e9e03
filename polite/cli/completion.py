"""`polite completion`: prints a script with which a shell completes command lines of polite."""

import argparse
from collections.abc import Iterator

from polite.cli.parser import parser
from polite.errors import InvalidOption
from polite.robots.dialect import BY_NAME


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
