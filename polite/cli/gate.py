"""A gate, or a file of rules, as the command's options ask for it."""

import argparse
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import polite
from polite.robots.policy import BODY_LIMIT


def gate(
    options: argparse.Namespace, *, max_bytes: int = BODY_LIMIT
) -> AbstractAsyncContextManager[polite.Gate]:
    """A gate with the options' agent, dialect, time-out and addresses."""
    return polite.open_gate(
        options.agent,
        robots=polite.RobotsPolicy(dialect=polite.dialect(options.dialect)),
        fetching=polite.FetchPolicy(
            timeout=options.timeout, allow_private=options.allow_private, max_bytes=max_bytes
        ),
    )


def rules(options: argparse.Namespace) -> polite.Robots | None:
    """The rules of `--robots FILE`, or None when the sites are to be asked. Raises OSError."""
    if options.robots is None:
        return None
    return polite.parse(Path(options.robots).read_bytes(), dialect=polite.dialect(options.dialect))
