"""Fetches a site's robots.txt for commands that read the file itself."""

import argparse

from polite.cli.gate import open_gate_for
from polite.cli.option_names import command_line_text, option_of
from polite.origin import Target
from polite.robots.fetching.result import FetchResult, Unavailable, Unreachable
from polite.robots.policy import BODY_LIMIT
from polite.robots.reason import Reason


async def site_file(
    options: argparse.Namespace, url: str, *, max_bytes: int = BODY_LIMIT
) -> tuple[Target, FetchResult]:
    """Return any URL of a site as a target, and the result of the fetch of its robots.txt."""
    async with open_gate_for(options, max_bytes=max_bytes) as gate:
        explanation = await gate.explain(url)
    return explanation.target, explanation.snapshot.access


def why_none(access: Unavailable | Unreachable) -> str:
    """Say why there is no file, and which command-line option changes that, if any does."""
    if access.reason is Reason.ADDRESS_REFUSED and isinstance(access, Unreachable) and access.detail:
        # It depends on the address whether an option permits it.
        return command_line_text(access.detail)
    option = option_of(access.reason.option)
    return f"{access.reason.value}; {option} changes it" if option else access.reason.value
