"""`polite check`: print for each URL whether it may be fetched, in input order and without delay."""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing

from polite.cli import stdin, urls
from polite.cli.exit_codes import Exit
from polite.cli.file import file_rules
from polite.cli.gate import open_gate_for
from polite.cli.url_report import UrlResult, as_object, as_text, exit_for, wants_colour
from polite.errors import InvalidURL
from polite.robots.decision import Decision

# The limit on concurrent checks; the rest of standard input is not read yet.
MAX_CONCURRENT = 64

_Checked = tuple[str, UrlResult]


class _Printer:
    """Prints one line per URL. `gravest` is the exit status so far."""

    def __init__(self, *, as_json: bool) -> None:
        self.gravest = Exit.ALLOWED
        self._as_json = as_json
        self._coloured = wants_colour(sys.stdout)

    def __call__(self, url: str, result: UrlResult) -> None:
        self.gravest = max(self.gravest, exit_for(result))
        line = (
            json.dumps(as_object(url, result))
            if self._as_json
            else as_text(url, result, coloured=self._coloured)
        )
        print(line, flush=True)


def check(options: argparse.Namespace) -> Exit:
    """Print the decision for each URL, in order. Return the highest exit status."""
    robots, show = file_rules(options), _Printer(as_json=options.json)
    if robots is None:
        asyncio.run(_check_sites(options, show))
        return show.gravest
    for url in _listed(options.urls):
        try:
            show(str(url), robots.decide(options.agent, urls.require_url(url)))
        except InvalidURL as error:
            show(str(url), error)
    return show.gravest


async def _check_sites(options: argparse.Namespace, show: _Printer) -> None:
    pending: asyncio.Queue[asyncio.Task[_Checked] | None] = asyncio.Queue(MAX_CONCURRENT)
    async with (
        open_gate_for(options) as gate,
        aclosing(stdin.in_thread(_listed(options.urls))) as listed,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(_show_all(pending, show))
        async for url in listed:
            await pending.put(tasks.create_task(_check(url, gate.check)))
        await pending.put(None)


async def _check(url: str | InvalidURL, decide: Callable[[str], Awaitable[Decision]]) -> _Checked:
    try:
        return str(url), await decide(urls.require_url(url))
    except InvalidURL as error:
        return str(url), error


async def _show_all(pending: "asyncio.Queue[asyncio.Task[_Checked] | None]", show: _Printer) -> None:
    """Print results in input order; later checks run meanwhile."""
    while (task := await pending.get()) is not None:
        show(*await task)


def _listed(arguments: Iterable[str]) -> Iterator[str | InvalidURL]:
    """Yield the URLs of the arguments; `-` stands for standard input. An invalid line is an InvalidURL."""
    for argument in arguments:
        if argument != "-":
            yield argument
        else:
            yield from urls.parse_lines(stdin.lines())
