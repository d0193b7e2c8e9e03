"""The options of `polite store`."""

import argparse

from polite.cli.options import add_json, add_number


def add_store_options(store: argparse.ArgumentParser) -> None:
    """Add all options of `polite store`."""
    store.add_argument(
        "action",
        choices=("ls", "show", "purge"),
        metavar="ls|show|purge",
        help="list the origins (or crawls), show all about one, or delete",
    )
    store.add_argument(
        "origin",
        nargs="?",
        metavar="ORIGIN",
        help="any URL of the origin; for show, and for purge of one origin",
    )
    store.add_argument(
        "file",
        metavar="FILE|URL",
        help="the store: a file, the queue of polite fetch --resume, or the URL of a shared one (redis://host/0)",
    )
    store.add_argument("--crawl", metavar="NAME", help="a crawl of a shared store; for ls, show and purge")
    add_number(
        store,
        "--limit",
        "limit on origins and URLs of a queue, or on crawls and entries of each kind of a shared store (default: %(default)s)",
        most=10_000,
        default="20",
    )
    store.add_argument("--yes", action="store_true", help="really purge a shared store")
    store.add_argument("--expired", action="store_true", help="purge only expired copies of robots.txt")
    store.add_argument("--back-offs", action="store_true", help="also purge back-offs that have not ended")
    add_json(store)
