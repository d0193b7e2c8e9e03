"""`polite check`: whether URLs may be fetched, each answered as soon as it and those before it are known."""

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing

from polite.cli import stdin, urls
from polite.cli.exit_codes import Exit
from polite.cli.file import rules
from polite.cli.gate import gate
from polite.cli.url_report import Answer, as_object, as_text, exit_for, wants_colour
from polite.errors import InvalidURL
from polite.robots.decision import Decision

# URLs that are under way at one time; the rest of standard input waits in the pipe.
WINDOW = 64

_Asked = tuple[str, Answer]


class _Printer:
    """Prints answers as they come; `gravest` is the exit status so far."""

    def __init__(self, *, as_json: bool) -> None:
        self.gravest = Exit.ALLOWED
        self._as_json = as_json
        self._coloured = wants_colour(sys.stdout)

    def __call__(self, url: str, answer: Answer) -> None:
        self.gravest = max(self.gravest, exit_for(answer))
        line = (
            json.dumps(as_object(url, answer))
            if self._as_json
            else as_text(url, answer, coloured=self._coloured)
        )
        print(line, flush=True)


def check(options: argparse.Namespace) -> Exit:
    """Print an answer for each URL, in order; gives the gravest exit status."""
    robots, show = rules(options), _Printer(as_json=options.json)
    if robots is None:
        asyncio.run(_ask_sites(options, show))
        return show.gravest
    for url in _wanted(options.urls):
        try:
            show(str(url), robots.decide(options.agent, urls.valid(url)))
        except InvalidURL as error:
            show(str(url), error)
    return show.gravest


async def _ask_sites(options: argparse.Namespace, show: _Printer) -> None:
    under_way: asyncio.Queue[asyncio.Task[_Asked] | None] = asyncio.Queue(WINDOW)
    async with (
        gate(options) as asking,
        aclosing(stdin.each(_wanted(options.urls))) as wanted,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(_show_all(under_way, show))
        async for url in wanted:
            await under_way.put(tasks.create_task(_answered(url, asking.check)))
        await under_way.put(None)


async def _answered(url: str | InvalidURL, decide: Callable[[str], Awaitable[Decision]]) -> _Asked:
    try:
        return str(url), await decide(urls.valid(url))
    except InvalidURL as error:
        return str(url), error


async def _show_all(under_way: "asyncio.Queue[asyncio.Task[_Asked] | None]", show: _Printer) -> None:
    """In the order of the questions: the oldest is waited for, those behind it are being answered meanwhile."""
    while (task := await under_way.get()) is not None:
        show(*await task)


def _wanted(arguments: Iterable[str]) -> Iterator[str | InvalidURL]:
    """The URLs as they come; a line of standard input that cannot be one spoils itself only."""
    for argument in arguments:
        if argument != "-":
            yield argument
        else:
            yield from urls.each(stdin.lines())
