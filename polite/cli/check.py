"""`polite check` and `polite explain`: whether URLs may be fetched, in input order and without delay, and why one may."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from typing import NamedTuple, TextIO

from polite.cli import stdin
from polite.cli.options import explained, file_rules, open_gate_for, read_octets, unnamed_agent
from polite.cli.terminal import OPTIONS, Exit, complain, printable, spelled
from polite.errors import InvalidOption, InvalidURL, InvalidUserAgent, redact_url
from polite.gate.gate import Gate
from polite.options import needing
from polite.origin import Origin, Target
from polite.robots.agent import UserAgent
from polite.robots.decision import Decision
from polite.robots.dialect import BY_NAME
from polite.robots.lines import readable, rows
from polite.robots.parse import Robots, parse
from polite.robots.reason import Reason
from polite.robots.result import Found, Unavailable
from polite.robots.rules import RuleSet
from polite.terms.usage import usage

UrlResult = Decision | InvalidURL


# By exit status, from ALLOWED to UNREACHABLE.
_WORDS = ("allowed", "disallowed", "invalid", "unreachable")
_WIDTH = max(map(len, _WORDS))
# Select Graphic Rendition: green, red, magenta, yellow.
_COLOURS = (32, 31, 35, 33)


def exit_for(result: UrlResult) -> Exit:
    """Return the exit status for one result."""
    if isinstance(result, InvalidURL):
        return Exit.USAGE
    if result.reason is Reason.UNREACHABLE:
        return Exit.UNREACHABLE
    return Exit.ALLOWED if result.allowed else Exit.DISALLOWED


def as_text(url: str, result: UrlResult, coloured: bool) -> str:  # noqa: FBT001
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
    return {"url": url if url.startswith("/") else Target.of(url).url, **_decision_fields(result)}


def _decision_fields(result: Decision) -> dict[str, object]:
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
    on_terminal = out is not None and out.isatty()
    return on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# The limit on concurrent checks; the rest of standard input is not read yet.
MAX_CONCURRENT = 64


def check(options: argparse.Namespace) -> Exit:
    """Print the decision for each URL, in order, or a table. Return the highest exit status."""
    return asyncio.run(_check(options) if options.agents is None else _check_agents(options))


async def _check(options: argparse.Namespace) -> Exit:
    robots, gravest, coloured = file_rules(options), Exit.ALLOWED, wants_colour(sys.stdout)
    pending: asyncio.Queue[tuple[str, asyncio.Task[UrlResult]] | None] = asyncio.Queue(MAX_CONCURRENT)

    def show(url: str, result: UrlResult) -> None:
        nonlocal gravest
        gravest = max(gravest, exit_for(result))
        shown = json.dumps(as_object(url, result)) if options.json else as_text(url, result, coloured)
        print(shown, flush=True)

    async def show_pending() -> None:
        """Print results in input order; later checks run meanwhile."""
        while (each := await pending.get()) is not None:
            show(each[0], await each[1])

    async with AsyncExitStack() as stack:
        if robots is None:
            gate = await stack.enter_async_context(open_gate_for(options))
        listed = await stack.enter_async_context(aclosing(stdin.read(options.urls)))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())

        async def decide(url: str | InvalidURL) -> UrlResult:
            try:
                given = stdin.require_url(url)
                return await gate.check(given) if robots is None else robots.decide(options.agent, given)
            except InvalidURL as error:
                return error

        tasks.create_task(show_pending())
        async for each in listed:
            if robots is not None:
                show(str(each.url), await decide(each.url))
            else:
                await pending.put((str(each.url), tasks.create_task(decide(each.url))))
        await pending.put(None)
    return gravest


# Many agents.

# The limit on agents: a list of a hundred thousand is no table, but a mistake. And on cells of one table.
MAX_AGENTS, _MAX_CELLS = 1_000, 100_000

_Agents = dict[str, UserAgent | None]


class _Cell(NamedTuple):
    """What is said of a decision. The decision itself holds all rules of its agent, which may be megabytes."""

    status: Exit
    fields: dict[str, object]


def _cell(decision: Decision) -> _Cell:
    return _Cell(exit_for(decision), _decision_fields(decision))


_Row = tuple[str, list[_Cell]]
_Decide = Callable[[Sequence[str]], list[list[_Cell]]]


async def _check_agents(options: argparse.Namespace) -> Exit:
    """Print a table, or one object per URL and agent. Raises InvalidOption, OSError."""
    if [options.agents, *options.urls].count("-") > 1:
        raise InvalidOption("only one of --agents and the URLs can read standard input")
    agents = _agents(options.agents)
    show = _show_objects if options.json else _table_printer()
    robots, gravest = file_rules(options), Exit.ALLOWED
    # URLs of one site with their paths, which wait to be decided together; and rows that wait to be shown.
    pending: list[tuple[str, str]] = []
    rows: list[_Row] = []
    decide = _by_rules(parse(b"") if robots is None else robots, agents)

    def decide_pending() -> None:
        nonlocal gravest
        for (url, _), row in zip(pending, decide([path for _, path in pending]), strict=True):
            gravest = max(gravest, *(cell.status for cell in row))
            rows.append((url, row))
        pending.clear()

    async with open_gate_for(options) as gate, aclosing(stdin.read(options.urls)) as listed:
        origin: Origin | None = None
        async for each in listed:
            try:
                url = stdin.require_url(each.url)
                target = None if robots is not None and url.startswith("/") else Target.of(url)
            except InvalidURL as error:
                complain(str(error))
                gravest = max(gravest, Exit.USAGE)
                continue
            if target is not None and robots is None and target.origin != origin:
                decide_pending()
                origin, decide = target.origin, await _by_site(gate, target, agents, options)
            pending.append((url, url) if target is None else (target.url, target.path))
            if (len(rows) + len(pending)) * len(agents) >= _MAX_CELLS:
                decide_pending()
                show(agents, rows)
                rows.clear()
    decide_pending()
    if rows:
        show(agents, rows)
    return gravest


def _agents(name: str) -> _Agents:
    """Return the agents of a list by header; None is one that no group names. Raises InvalidOption, OSError."""
    agents: _Agents = {}
    for number, line in enumerate(stdin.lines(name), 1):
        if stdin.is_comment(line):
            continue
        try:
            header = line.decode("utf-8-sig").strip()
            agents[header] = None if header == "*" else UserAgent(header)
        except (UnicodeDecodeError, InvalidUserAgent) as error:
            raise InvalidOption(f"--agents {name}, line {number}: {error}") from error
        if len(agents) > MAX_AGENTS:
            raise InvalidOption(f"--agents {name} has more than {MAX_AGENTS} agents: split the list")
    if not agents:
        raise InvalidOption(
            f"--agents {name} has no agent: write one User-Agent header per line, or * for any other"
        )
    return agents


def _by_rules(robots: Robots, agents: _Agents) -> _Decide:
    """Return what decides about paths: a row for each, with the decision for each agent."""
    bindings = robots.bindings()
    unnamed = unnamed_agent(bindings.names())

    def decide(paths: Sequence[str]) -> list[list[_Cell]]:
        # Agent by agent. Those of the same group share the decisions.
        columns: list[list[_Cell]] = []
        decided: RuleSet | None = None
        for agent in agents.values():
            rules = bindings.rules_for(agent or unnamed)
            columns.append(columns[-1] if rules is decided else [_cell(rules.decide(path)) for path in paths])
            decided = rules
        return [list(row) for row in zip(*columns, strict=True)]

    return decide


async def _by_site(gate: Gate, target: Target, agents: _Agents, options: argparse.Namespace) -> _Decide:
    access = (await gate.explain(target.url)).snapshot.access
    match access:
        case Found():
            return _by_rules(parse(access.body, options.dialect), agents)
        case Unavailable():
            rules = RuleSet.allow_all(Reason.UNAVAILABLE, access=access, dialect=options.dialect)
        case _:
            rules = RuleSet.deny_all(Reason.UNREACHABLE, access=access, dialect=options.dialect)
    # Without a file all agents are in the same case.
    return lambda paths: [[_cell(rules.decide(path))] * len(agents) for path in paths]


def _show_objects(agents: _Agents, rows: Iterable[_Row]) -> None:
    for url, cells in rows:
        for header, cell in zip(agents, cells, strict=True):
            print(json.dumps({"url": url, "agent": header, **cell.fields}))


def _table_printer() -> Callable[[_Agents, Iterable[_Row]], None]:
    """Return what prints a table: a cell has the line of the rule that decides. Raises InvalidOption without the package rich."""
    with needing("polite check --agents needs the package rich", "cli", ", or use --json"):
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

    def show(agents: _Agents, rows: Iterable[_Row]) -> None:
        table = Table(box=None, pad_edge=False)
        table.add_column("URL", overflow="fold")
        names = ["*" if agent is None else agent.named[0] for agent in agents.values()]
        for name, header in zip(names, agents, strict=True):
            # Agents of one name are told apart by their headers.
            table.add_column(Text(printable(name if names.count(name) == 1 else header)), overflow="fold")
        for url, cells in rows:
            texts = []
            for status, fields in cells:
                word = ("yes", "no", *_WORDS[2:])[status]
                line = "" if fields["line"] is None else f" {fields['line']}"
                colour = "green" if fields["allowed"] else "red"
                texts.append(Text(f"{word}{'?' if fields['undefined'] else ''}{line}", colour))
            table.add_row(Text(printable(url)), *texts)
        Console(file=sys.stdout).print(table)

    return show


# One URL.

# The limit on lines of robots.txt that are printed.
_MAX_LINES = 60
_MAX_LICENSES = 10
# The options of `explain` that its text may name; those of a crawl it has not.
_ITS = ("--timeout", "--allow-private", "--dialect")
_OPTIONS = {name: option for name, option in OPTIONS.items() if option in _ITS}


def explain(options: argparse.Namespace) -> Exit:
    """Print the explanation. Return the exit status of its decision."""
    if options.robots is None:
        explanation = asyncio.run(explained(options, options.url))
        print(spelled(str(explanation), _OPTIONS))
        access, decision = explanation.snapshot.access, explanation.decision
        if isinstance(access, Found):
            _show(access.body, options)
    else:
        body = read_octets(options.robots)
        robots = parse(body, options.dialect)
        decision = robots.decide(options.agent, options.url)
        delay_s = robots.rules_for(options.agent).crawl_delay
        print(f"{redact_url(options.url)}\n  {decision}")
        print(f"  Crawl-delay: {'none' if delay_s is None else f'{delay_s:g} s'}")
        _show(body, options)
    return exit_for(decision)


def _show(body: bytes, options: argparse.Namespace) -> None:
    """Print what led to the decision, the lines of the file that matter, and what it says of the use of the page."""
    robots = parse(body, options.dialect)
    found = robots.explain(options.agent, options.url)
    # The first line is the decision, which is printed already. Fields of a dialect are Python names, and no options.
    shown = str(replace(found, sensitive_to=())).splitlines()[1:]
    # The file is read again only if the decision depends on the dialect at all.
    for each in BY_NAME.values() if found.sensitive_to else ():
        decision = parse(body, each).decide(options.agent, options.url)
        if decision.allowed != found.decision.allowed:
            shown.append(f"dialect: --dialect {each.name} would reverse this decision")
    texts = rows(body, options.dialect)
    names = {number for group in found.groups for number in group.lines}
    numbers = sorted(names | {match.rule.line for match in found.matches})
    decided = found.winner.rule.line if found.winner else 0
    shown += [
        f"{'>' if number == decided else ' '} {number:5} | {redact_url(readable(texts[number - 1]))}"
        for number in numbers[:_MAX_LINES]
    ]
    if len(numbers) > _MAX_LINES:
        shown.append(f"  and {len(numbers) - _MAX_LINES} more")
    # Refusals come first.
    said = usage((), robots, options.agent, options.url)
    shown += [f"use: {statement}" for statement in said.statements[:_MAX_LINES]]
    if len(said.statements) > _MAX_LINES:
        shown.append(f"and {len(said.statements) - _MAX_LINES} more uses")
    shown += [f"licence: {redact_url(url)} (line {line})" for url, line in said.licenses[:_MAX_LICENSES]]
    if len(said.licenses) > _MAX_LICENSES:
        shown.append(f"and {len(said.licenses) - _MAX_LICENSES} more licences")
    print("".join(f"  {text}\n" for text in shown), end="")
