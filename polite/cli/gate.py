"""Opens a gate from a command's options."""

import argparse
from contextlib import AbstractAsyncContextManager

from polite.compose.gate import open_gate
from polite.gate.gate import Gate
from polite.robots.policy import BODY_LIMIT, FetchPolicy, RobotsPolicy


def open_gate_for(
    options: argparse.Namespace, *, max_bytes: int = BODY_LIMIT
) -> AbstractAsyncContextManager[Gate]:
    """Open a gate with the options' agent, dialect, timeout, address rule and named hosts."""
    return open_gate(
        options.agent,
        robots=RobotsPolicy(dialect=options.dialect),
        fetching=FetchPolicy(
            timeout=options.timeout, allow_private=options.allow_private, max_bytes=max_bytes
        ),
        resolver=options.resolve,
    )
