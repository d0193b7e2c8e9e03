"""A gate as the command's options ask for it."""

import argparse
from contextlib import AbstractAsyncContextManager

from polite.compose import open_gate
from polite.gate.gate import Gate
from polite.robots.policy import BODY_LIMIT, FetchPolicy, RobotsPolicy


def gate(options: argparse.Namespace, *, max_bytes: int = BODY_LIMIT) -> AbstractAsyncContextManager[Gate]:
    """A gate with the options' agent, dialect, time-out and addresses."""
    return open_gate(
        options.agent,
        robots=RobotsPolicy(dialect=options.dialect),
        fetching=FetchPolicy(
            timeout=options.timeout, allow_private=options.allow_private, max_bytes=max_bytes
        ),
    )
