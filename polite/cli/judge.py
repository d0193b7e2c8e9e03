"""`polite judge`: serve practice sites to any crawler, and judge its crawl by their log."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from polite.cli.interrupts import Interrupt, interrupts
from polite.cli.terminal import Exit, complain, printable
from polite.errors import InvalidOption
from polite.judge.report import Report, read, written
from polite.judge.server import Sites, serving
from polite.judge.sites import Host, practice_sites
from polite.judge.verdict import Request

# A gap may be shorter by this, by a share of the delay, or at most by half of it: a busy machine sends, and reads, some late.
TOLERANCE_S, TOLERANCE = 0.01, 0.05
# More requests end a crawl.
MOST_REQUESTS = 250_000
# Characters of a line of a log, and of a line of the table, which clients fill.
_LONGEST, _WIDEST = 200_000, 300
# How often the log is looked at, and how long a command may take to end after a signal, in seconds.
_LOOK_S, _END_S = 0.1, 10.0


def judge(options: argparse.Namespace) -> Exit:
    """Judge a crawl, and return the exit status. Raises InvalidOption, OSError."""
    token = "" if options.agent is None else options.agent.token
    hosts = practice_sites(token)
    failed = False
    if options.serve:
        if options.log is not None:
            _write(options.log, (), "a")  # it fails now, not after the crawl
        try:
            requests, addresses, failed = asyncio.run(_serve(options, hosts))
        except asyncio.CancelledError:  # by the third ^C
            return Exit.INTERRUPTED
    elif options.log is None or options.command:
        raise InvalidOption("--serve is needed, or --log FILE alone, of an earlier run")
    else:
        requests, addresses = _read(options.log, hosts), {host.name: host.name for host in hosts}
    report = Report.of(
        hosts, requests, options.delay, min(max(TOLERANCE_S, TOLERANCE * options.delay), options.delay / 2)
    )
    lines = (
        [report.as_json(addresses)]
        if options.json
        else [printable(line[:_WIDEST]) for line in report.lines(addresses)]
    )
    print("\n".join(lines))
    if options.serve and options.log is not None:
        _write(options.log, requests, "w")
    if requests and not any(token.lower() in agent.lower() for agent in report.agents):
        complain(f"no request had {token} in its User-Agent header, as --agent says")
    if len(requests) >= MOST_REQUESTS:
        complain(f"the judge ends after {MOST_REQUESTS:,} requests: what came later is not judged")
    if not requests or len(requests) >= MOST_REQUESTS:
        return Exit.USAGE
    if not report.polite:
        return Exit.DISALLOWED
    return Exit.UNREACHABLE if failed else Exit.ALLOWED


async def _serve(
    options: argparse.Namespace, hosts: tuple[Host, ...]
) -> tuple[list[Request], dict[str, str], bool]:
    """Serve until a signal, the end of the command, or a time without requests.

    Return the log, the sites' addresses, and whether the command failed.
    """
    async with serving(hosts, options.port) as sites, interrupts() as interrupt:
        seeds = [sites.url(host.name) for host in hosts]
        failed = False
        if options.command:
            failed = await _run(options, seeds, sites, interrupt)
        else:
            print("\n".join(seeds), file=sys.stderr if options.json else sys.stdout, flush=True)
            complain("serving these sites; ^C judges the crawl")
            await _until_quiet(sites, options.idle, interrupt)
    return sites.requests, {host.name: f"{sites.addresses[host.name]}:{sites.port}" for host in hosts}, failed


async def _until_quiet(sites: Sites, idle_s: float | None, interrupt: Interrupt) -> None:
    """Wait for a signal, for a time without requests, or for too many requests."""
    loop = asyncio.get_running_loop()
    seen, since = 0, loop.time()
    while not interrupt.first.is_set() and len(sites.requests) < MOST_REQUESTS:
        if len(sites.requests) > seen:
            seen, since = len(sites.requests), loop.time()
        elif idle_s is not None and loop.time() - since > idle_s:
            return
        await asyncio.sleep(_LOOK_S)


async def _run(options: argparse.Namespace, seeds: list[str], sites: Sites, interrupt: Interrupt) -> bool:
    """Run a crawler until it ends, and return whether it failed. Raises InvalidOption."""
    words = [word for each in options.command for word in (seeds if each == "{}" else [each])]
    try:
        # A group of its own: what it starts ends with it.
        process = await asyncio.create_subprocess_exec(*words, stdout=sys.stderr, start_new_session=True)
    except (OSError, ValueError) as error:
        raise InvalidOption(f"{words[0]!r} cannot be run: {error}") from error
    ended = asyncio.create_task(process.wait())
    watched = asyncio.create_task(_until_quiet(sites, options.idle, interrupt))
    again = asyncio.create_task(interrupt.second.wait())
    try:
        await asyncio.wait([ended, watched], return_when=asyncio.FIRST_COMPLETED)
        if stopped := not ended.done():
            _kill(process.pid, signal.SIGTERM)
            await asyncio.wait([ended, again], timeout=_END_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        watched.cancel()
        again.cancel()
        _kill(process.pid, signal.SIGKILL)
    if (status := await ended) and not stopped:
        complain(f"{words[0]} ended with status {status}")
    return bool(status) and not stopped


def _kill(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _write(file: str, requests: Iterable[Request], mode: str) -> None:
    """Write a log. Raises InvalidOption."""
    try:
        with Path(file).open(mode, encoding="utf-8") as log:
            log.writelines(f"{written(request)}\n" for request in requests)
    except OSError as error:
        raise InvalidOption(f"--log {file}: {error.strerror or error}") from error


def _read(file: str, hosts: Iterable[Host]) -> list[Request]:
    """Read a log. Raises InvalidOption, OSError."""
    names = {host.name for host in hosts}
    found: list[Request] = []
    with Path(file).open(encoding="utf-8-sig", errors="replace") as log:
        lines = iter(lambda: log.readline(_LONGEST), "")
        for number, line in enumerate(islice(lines, MOST_REQUESTS), start=1):
            try:
                if line.strip():
                    found.append(read(line))
            except ValueError as error:
                raise InvalidOption(f"{file}:{number}: {error}") from error
            if found and found[-1].host not in names:
                raise InvalidOption(f"{file}:{number}: there is no site {found[-1].host!r}")
    return found
