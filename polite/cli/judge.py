"""`polite judge`: serve practice sites to any crawler, and judge its crawl by their log."""

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TextIO

from polite.cli.interrupts import Interrupt, interrupts
from polite.cli.terminal import Exit, complain
from polite.errors import InvalidOption
from polite.judge.report import Report, read, written
from polite.judge.server import Sites, serving
from polite.judge.sites import Host, practice_sites
from polite.judge.verdict import Request

# A gap may be shorter by this, or by a share of the delay: a busy machine sends, and reads, some requests late.
TOLERANCE_S, TOLERANCE = 0.01, 0.05
# More requests end a crawl.
MOST_REQUESTS = 1_000_000
# How often the log is looked at, and how long a command may take to end after a signal, in seconds.
_LOOK_S, _END_S = 0.1, 10.0


def judge(options: argparse.Namespace) -> Exit:
    """Judge a crawl. Return 0 if it was polite, 1 if not. Raises InvalidOption, OSError."""
    hosts = practice_sites("" if options.agent is None else options.agent.token)
    if options.serve:
        with open(options.log or os.devnull, "w", encoding="utf-8", buffering=1) as log:  # noqa: PTH123
            requests, addresses = asyncio.run(_serve(options, hosts, log))
    elif options.log is None or options.command:
        raise InvalidOption("--serve is needed, or --log FILE alone, of an earlier run")
    else:
        requests, addresses = _read(options.log), {host.name: host.name for host in hosts}
    report = Report.of(hosts, requests, options.delay, max(TOLERANCE_S, TOLERANCE * options.delay))
    print(report.as_json(addresses) if options.json else "\n".join(report.lines(addresses)))
    if not requests:
        return Exit.USAGE
    return Exit.ALLOWED if report.polite else Exit.DISALLOWED


async def _serve(
    options: argparse.Namespace, hosts: tuple[Host, ...], log: TextIO
) -> tuple[list[Request], dict[str, str]]:
    """Serve until a signal, the end of the command, or a time without requests. Return the log, and the sites' addresses."""
    async with serving(hosts, options.port) as sites, interrupts() as interrupt:
        sites.log = lambda request: log.write(f"{written(request)}\n")
        seeds = [sites.url(host.name) for host in hosts]
        if not options.command:
            print("\n".join(seeds), file=sys.stderr if options.json else sys.stdout, flush=True)
            complain("serving these sites; ^C judges the crawl")
            await _until_quiet(sites, options.idle, interrupt)
        else:
            await _run(options.command, seeds, sites, interrupt)
    return sites.requests, {host.name: f"{sites.addresses[host.name]}:{sites.port}" for host in hosts}


async def _until_quiet(sites: Sites, idle_s: float | None, interrupt: Interrupt) -> None:
    """Wait for a signal, for a time without requests after the first, or for too many requests."""
    loop = asyncio.get_running_loop()
    seen, since = 0, loop.time()
    while not interrupt.first.is_set() and len(sites.requests) < MOST_REQUESTS:
        if len(sites.requests) > seen:
            seen, since = len(sites.requests), loop.time()
        elif seen and idle_s is not None and loop.time() - since > idle_s:
            return
        await asyncio.sleep(_LOOK_S)


async def _run(command: list[str], seeds: list[str], sites: Sites, interrupt: Interrupt) -> None:
    """Run a crawler until it ends. `{}` among its arguments stands for the seeds. Raises InvalidOption."""
    words = [word for each in command for word in (seeds if each == "{}" else [each])]
    try:
        process = await asyncio.create_subprocess_exec(*words, stdout=sys.stderr)
    except OSError as error:
        raise InvalidOption(f"{words[0]} cannot be run: {error.strerror or error}") from error
    ended = asyncio.create_task(process.wait())
    try:
        watched = asyncio.create_task(_until_quiet(sites, None, interrupt))
        await asyncio.wait([ended, watched], return_when=asyncio.FIRST_COMPLETED)
        watched.cancel()
        if not ended.done():
            process.terminate()
            await asyncio.wait([ended], timeout=_END_S)
    finally:
        if not ended.done():
            process.kill()
    if status := await ended:
        complain(f"{words[0]} ended with status {status}")


def _read(file: str) -> list[Request]:
    """Read a log. Raises InvalidOption, OSError."""
    found: list[Request] = []
    with Path(file).open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                found.append(read(line))
            except ValueError as error:
                raise InvalidOption(f"{file}:{number}: {error}") from error
            if number >= MOST_REQUESTS:
                break
    return found
