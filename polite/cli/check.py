"""`polite check`: print for each URL whether it may be fetched, in input order and without delay."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace
from itertools import islice
from typing import Protocol, TextIO

from polite.cli import options as file
from polite.cli import stdin
from polite.cli import stdin as urls
from polite.cli.option_names import command_line_text
from polite.cli.options import file_rules, open_gate_for
from polite.cli.terminal import Exit
from polite.errors import InvalidURL, redact_url
from polite.origin import Target
from polite.robots.decision import Decision, Rule
from polite.robots.dialect import BY_NAME
from polite.robots.lines import readable, rows
from polite.robots.parse import Robots, parse
from polite.robots.reason import Reason
from polite.robots.result import Found
from polite.robots.trace import DecisionTrace
from polite.terms.usage import Usage, usage

UrlResult = Decision | InvalidURL


class Decided(Protocol):
    """What a decision says; `Decision` has it."""

    @property
    def allowed(self) -> bool: ...

    @property
    def reason(self) -> Reason: ...

    @property
    def cause(self) -> Reason | None: ...

    @property
    def rule(self) -> Rule | None: ...

    @property
    def undefined(self) -> bool: ...


_WORDS = {
    Exit.ALLOWED: "allowed",
    Exit.DISALLOWED: "disallowed",
    Exit.USAGE: "invalid",
    Exit.UNREACHABLE: "unreachable",
}
_WIDTH = max(map(len, _WORDS.values()))
# Select Graphic Rendition: green, red, magenta, yellow.
_COLOURS = {Exit.ALLOWED: 32, Exit.DISALLOWED: 31, Exit.USAGE: 35, Exit.UNREACHABLE: 33}


def exit_for(result: UrlResult) -> Exit:
    """Return the exit status for one result."""
    if isinstance(result, InvalidURL):
        return Exit.USAGE
    if result.reason is Reason.UNREACHABLE:
        return Exit.UNREACHABLE
    return Exit.ALLOWED if result.allowed else Exit.DISALLOWED


def as_text(url: str, result: UrlResult, *, coloured: bool = False) -> str:
    """Return one line: the decision, the URL, and the reason."""
    status = exit_for(result)
    word = f"{_WORDS[status]:<{_WIDTH}}"
    if coloured:
        word = f"\x1b[{_COLOURS[status]}m{word}\x1b[0m"
    return f"{word} {result}" if isinstance(result, InvalidURL) else f"{word} {redact_url(url)}  {result}"


def as_object(url: str, result: UrlResult) -> dict[str, object]:
    """Return the fields of a JSON object. `url` is canonical; an invalid one is shown as far as possible."""
    if isinstance(result, InvalidURL):
        return {"url": result.url, "allowed": None, "error": str(result)}
    return {"url": url if url.startswith("/") else Target.of(url).url, **decision_fields(result)}


def decision_fields(result: Decided) -> dict[str, object]:
    """Return the fields of a JSON object that say what was decided, and why."""
    rule = result.rule
    return {
        "allowed": result.allowed,
        "reason": result.reason.name,
        "cause": None if result.cause is None else result.cause.name,
        "rule": None if rule is None else f"{'Allow' if rule.allows else 'Disallow'}: {rule.pattern}",
        "line": None if rule is None else rule.line,
        "undefined": result.undefined,
    }


def wants_colour(out: TextIO | None) -> bool:
    """Whether to use colours: on a terminal, unless NO_COLOR is set (no-color.org). None is a closed output."""
    return (
        out is not None
        and out.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


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


# The limit on lines of robots.txt that are printed.
_MAX_LINES = 60
_MAX_LICENSES = 10


def explain(options: argparse.Namespace) -> Exit:
    """Print the explanation. Return the exit status of its decision."""
    return exit_for(asyncio.run(_by_site(options)) if options.robots is None else _by_file(options))


async def _by_site(options: argparse.Namespace) -> Decision:
    async with open_gate_for(options) as gate:
        explanation = await gate.explain(options.url)
    print(command_line_text(str(explanation)))
    access = explanation.snapshot.access
    if isinstance(access, Found):
        _show(parse(access.body, options.dialect), access.body, options)
    return explanation.decision


def _by_file(options: argparse.Namespace) -> Decision:
    body = file.read_octets(options.robots)
    robots = parse(body, options.dialect)
    decision, bound = robots.decide(options.agent, options.url), robots.rules_for(options.agent)
    print(redact_url(options.url))
    print(f"  {decision}")
    print(f"  Crawl-delay: {'none' if bound.crawl_delay is None else f'{bound.crawl_delay:g} s'}")
    _show(robots, body, options)
    return decision


def _show(robots: Robots, body: bytes, options: argparse.Namespace) -> None:
    explained = robots.explain(options.agent, options.url)
    # The first line is the decision, which is printed already. Fields of a dialect are Python names, and no options.
    for text in str(replace(explained, sensitive_to=())).splitlines()[1:]:
        print(f"  {text}")
    for name in _opposed(explained, body, options):
        print(f"  dialect: --dialect {name} would reverse this decision")
    for text in _excerpt(explained, rows(body, options.dialect)):
        print(f"  {text}")
    for text in _uses(usage((), robots, options.agent, options.url)):
        print(f"  {text}")


def _uses(said: Usage) -> Iterator[str]:
    """Yield what robots.txt says of the use of the page, refusals first."""
    yield from (f"use: {statement}" for statement in islice(said.statements, _MAX_LINES))
    if len(said.statements) > _MAX_LINES:
        yield f"and {len(said.statements) - _MAX_LINES} more uses"
    yield from (f"licence: {redact_url(url)} (line {line})" for url, line in said.licenses[:_MAX_LICENSES])
    if len(said.licenses) > _MAX_LICENSES:
        yield f"and {len(said.licenses) - _MAX_LICENSES} more licences"


def _opposed(explained: DecisionTrace, body: bytes, options: argparse.Namespace) -> Iterator[str]:
    """Yield the dialects that decide otherwise. A file is read again only if the decision depends on the dialect at all."""
    if not explained.sensitive_to:
        return
    for each in BY_NAME.values():
        if each != options.dialect:
            decision = parse(body, each).decide(options.agent, options.url)
            if decision.allowed != explained.decision.allowed:
                yield each.name


def _excerpt(explained: DecisionTrace, texts: list[str]) -> Iterator[str]:
    """Yield the lines of the group and of matching rules, numbered; `>` marks the deciding one."""
    names = {number for group in explained.groups for number in group.lines}
    numbers = sorted(names | {match.rule.line for match in explained.matches})
    decided = explained.winner.rule.line if explained.winner else 0
    for number in islice(numbers, _MAX_LINES):
        yield f"{'>' if number == decided else ' '} {number:5} | {redact_url(readable(texts[number - 1]))}"
    if len(numbers) > _MAX_LINES:
        yield f"  and {len(numbers) - _MAX_LINES} more"
