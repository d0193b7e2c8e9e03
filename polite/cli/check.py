"""`polite check`: whether URLs may be fetched, each answered as soon as it and those before it are known."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable

import polite
from polite.cli.exits import Exit, gravest
from polite.cli.gate import gate, rules

# URLs of standard input that are under way at one time; the rest waits in the pipe.
_WINDOW = 64


def check(options: argparse.Namespace) -> Exit:
    """Print an answer for each URL, in order; gives the gravest exit status."""
    return asyncio.run(_check(options))


async def _check(options: argparse.Namespace) -> Exit:
    agent, robots = polite.UserAgent(options.agent), rules(options)
    seen = {Exit.ALLOWED}

    async def answer(url: str) -> tuple[str, polite.Decision | polite.InvalidURL]:
        try:
            return url, robots.decide(agent, url) if robots is not None else await asking.check(url)
        except polite.InvalidURL as error:
            return url, error

    async with gate(options) as asking, asyncio.TaskGroup() as tasks:
        waiting: asyncio.Queue[asyncio.Task[tuple[str, polite.Decision | polite.InvalidURL]] | None]
        waiting = asyncio.Queue(_WINDOW)
        printing = tasks.create_task(_print_all(waiting, seen, as_json=options.json))
        async for url in _urls(options.urls):
            await waiting.put(tasks.create_task(answer(url)))
        await waiting.put(None)
        await printing
    return gravest(seen)


async def _print_all(
    waiting: "asyncio.Queue[asyncio.Task[tuple[str, polite.Decision | polite.InvalidURL]] | None]",
    seen: set[Exit],
    *,
    as_json: bool,
) -> None:
    while (task := await waiting.get()) is not None:
        url, answer = await task
        seen.add(exit_for(answer))
        print(json.dumps(as_object(url, answer)) if as_json else as_text(url, answer), flush=True)


async def _urls(arguments: Iterable[str]) -> AsyncIterator[str]:
    """The URLs as they come; standard input is read a line at a time, off the loop, so that nothing waits for its end."""
    for argument in arguments:
        if argument != "-":
            yield argument
            continue
        while line := await asyncio.to_thread(sys.stdin.readline):
            if url := line.strip():
                yield url


def exit_for(answer: polite.Decision | polite.InvalidURL) -> Exit:
    """The exit status that one answer stands for."""
    if isinstance(answer, polite.InvalidURL):
        return Exit.USAGE
    if answer.reason is polite.Reason.UNREACHABLE:
        return Exit.UNREACHABLE
    return Exit.ALLOWED if answer.allowed else Exit.DISALLOWED


def as_text(url: str, answer: polite.Decision | polite.InvalidURL) -> str:
    """One line for people: the verdict, the URL, and why."""
    if isinstance(answer, polite.InvalidURL):
        return f"invalid     {answer}"
    verdict = {Exit.ALLOWED: "allowed", Exit.UNREACHABLE: "unreachable"}.get(exit_for(answer), "disallowed")
    return f"{verdict:<11} {polite.shown(url)}  {answer}"


def as_object(url: str, answer: polite.Decision | polite.InvalidURL) -> dict[str, object]:
    """One object for programs; `line` and `rule` are null where no rule decided."""
    if isinstance(answer, polite.InvalidURL):
        return {"url": polite.shown(url), "allowed": None, "error": str(answer)}
    rule = answer.rule
    return {
        "url": polite.shown(url),
        "allowed": answer.allowed,
        "reason": answer.reason.name,
        "cause": None if answer.cause is None else answer.cause.name,
        "rule": None if rule is None else f"{'Allow' if rule.allows else 'Disallow'}: {rule.pattern}",
        "line": None if rule is None else rule.line,
        "undefined": answer.undefined,
    }
