"""The `polite` command: one file or package per subcommand.

`parser` declares the subcommands, and imports one only when it runs, so that `polite --help` loads no HTTP client. A package whose
subcommand has many options declares them in `options`.
`main` runs it, and turns expected errors into one line on standard error and an exit status (`exit_codes`).
Each subcommand is a function from the parsed options to an exit status. It uses the library as any program would: `gate` opens
a gate from the options. Only the files of a crawl are read below the public API: `stores.robots_database` lists a robots store, and
`frontier.sqlite.inspector` counts what waits in a queue. `stdin` and `urls` read lists of URLs while they arrive, and
`url_report` formats the decision about one URL. The library names options as Python does; `option_names` translates them
before a message is printed.
"""

from polite.cli.main import main, program

__all__ = ["main", "program"]
