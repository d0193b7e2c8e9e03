"""The `polite` command, a file for each subcommand."""

from polite.cli.main import main, program

__all__ = ["main", "program"]
