"""The options of `polite card`."""

import argparse

from polite.cli.options import DEFAULT_AGENT, add_number, typed
from polite.robots.agent import UserAgent


def add_card_options(card: argparse.ArgumentParser) -> None:
    """Add all options of `polite card`."""
    card.add_argument("key", metavar="KEY", help="the file of an Ed25519 key: PEM, or a JWK")
    card.add_argument("--new", action="store_true", help="make a new key in KEY, which must not exist")
    card.add_argument(
        "--signature-agent",
        metavar="URL",
        help="where the key directory is served: its URL, or its origin for the well-known one there",
    )
    card.add_argument("--output", metavar="DIR", help="write the files to DIR, as they are to be served")
    card.add_argument(
        "--agent",
        type=typed(UserAgent),
        default=DEFAULT_AGENT,
        help="the User-Agent header (default: POLITE_AGENT, else %(default)s)",
    )
    card.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="KEY",
        help="another key for the directory, while keys change; may be repeated",
    )
    card.add_argument("--about", metavar="URL", help="the page about the crawler (default: the URL in AGENT)")
    card.add_argument(
        "--contact",
        action="append",
        default=[],
        metavar="URI",
        help="such as mailto:bot@example.com; may be repeated",
    )
    card.add_argument("--purpose", metavar="TEXT", help="what the data is for, such as search")
    card.add_argument("--ip-ranges", metavar="URL", help="where the crawler's address ranges are published")
    add_number(
        card,
        "--days",
        "how long the signatures of the directory are valid (default: %(default)s)",
        most=366,
        default="30",
    )
