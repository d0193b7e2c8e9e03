"""The `polite` command, a file for each subcommand."""

from polite.cli.main import main

__all__ = ["main"]
