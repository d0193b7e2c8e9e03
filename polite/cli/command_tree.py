"""The subcommands of the parser and their arguments, for completion and man pages."""

import argparse
from collections.abc import Iterator


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
