"""The `polite` command: a file or a package per subcommand, but `explain` is in `check.py`, and `completion` in `parser.py`.

`parser` declares the subcommands and their arguments, and imports one only when it runs, so that `polite --help` loads no HTTP
client. `options` checks values, and has what several subcommands make of them. `main` runs a subcommand, and turns expected errors
into one line on standard error and an exit status.
Each subcommand is a function from the parsed options to an exit status. It uses the library as any program would. Only the files
of a crawl are read below the public API: `store` lists them. `stdin` reads lists of URLs while they arrive. The library names
options as Python does; `terminal` has the names of the command line.
"""

from polite.cli.main import main, program

__all__ = ["main", "program"]
