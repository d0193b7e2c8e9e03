"""The options of `polite matrix`."""

import argparse

from polite.cli.options import add_format, add_network, add_number


def add_matrix_options(matrix: argparse.ArgumentParser) -> None:
    """Add all options of `polite matrix`."""
    matrix.add_argument(
        "--robots",
        required=True,
        metavar="FILE|URL",
        help="a robots.txt, - for standard input, or any URL of the site",
    )
    matrix.add_argument(
        "--agents",
        required=True,
        metavar="FILE",
        help="a list of User-Agent headers, one per line, or * for an agent that no group names; - reads standard input",
    )
    matrix.add_argument(
        "--urls",
        required=True,
        metavar="FILE",
        help="a list of URLs or paths, one per line; - reads standard input",
    )
    matrix.add_argument(
        "--rules",
        action="store_true",
        help="add the rule of each verdict, and its line (json always has them)",
    )
    add_format(
        matrix,
        ("text", "json", "csv"),
        "text (default), json (one object per URL and agent), or csv (one record per URL)",
    )
    add_number(
        matrix,
        "--width",
        "limit on characters of a line of text (default: the terminal's width, or 80)",
        least=40,
        most=1_000,
    )
    add_network(matrix)
