"""`polite serve`: one gate for the programs of a machine, until a signal ends it."""

import argparse
import asyncio
import os
import re
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from polite.cli.interrupts import interrupts
from polite.cli.options import agent_needed, crawl_options, fetching_of, is_unnamed, shared_store, signer_of
from polite.cli.terminal import Exit, complain, counted
from polite.compose.gate import open_gate
from polite.errors import InvalidOption
from polite.recrawl import RecrawlPolicy
from polite.robots.policy import RobotsPolicy
from polite.serve import serve as serve_gate
from polite.status.server import OPERATOR, TOKEN, TOKEN_FORM
from polite.stores.sqlite import SqliteStore

_LISTEN = re.compile(r"(?P<host>[^:\[\]]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_TOKEN_LINE = re.compile(r"(?:(?P<name>[^:\s]{1,100}):\s*)?(?P<token>\S+)")
# Octets of a file of tokens.
_LARGEST = 1 << 20
# Connections that a server of this kind may have, and files that it needs besides.
_MOST_CONNECTIONS, _OTHER_FILES = 50_000, 500


def serve(options: argparse.Namespace) -> Exit:
    """Serve until a signal, and return the exit status that it has. Raises InvalidOption, OSError, StoreFailed."""
    if is_unnamed(options):
        raise agent_needed("polite serve")
    shared = options.store is not None and "://" in options.store
    if shared != (options.crawl is not None):
        raise InvalidOption("--store URL and --crawl NAME are needed together")
    return asyncio.run(_serve(options, _place(options.listen), _tokens(options), shared=shared))


def _place(listen: str) -> dict[str, Any]:
    """Return where to listen. Raises InvalidOption."""
    if listen.startswith("unix:") and listen != "unix:":
        return {"unix": listen.removeprefix("unix:")}
    found = _LISTEN.fullmatch(listen)
    if found is None or int(found["port"]) > 65_535:
        raise InvalidOption(
            f"--listen must be HOST:PORT, with an IPv6 address in brackets, or unix:PATH, got {listen!r}"
        )
    return {"host": found["host"].strip("[]"), "port": int(found["port"])}


def _tokens(options: argparse.Namespace) -> dict[str, str]:
    """Return the tokens by the names of clients. Raises InvalidOption, which shows none of them, and OSError."""
    tokens = {}
    if token := os.environ.get("POLITE_SERVE_TOKEN"):
        if not TOKEN.fullmatch(token):
            raise InvalidOption(f"POLITE_SERVE_TOKEN must have {TOKEN_FORM}; it is not shown here")
        tokens[OPERATOR] = token
    if options.token_file is None:
        return tokens
    with Path(options.token_file).open(encoding="utf-8", errors="replace") as file:
        lines = file.read(_LARGEST).splitlines()
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _TOKEN_LINE.fullmatch(line.strip())
        name = None if found is None else found["name"] or f"line {number}"
        place = f"--token-file {options.token_file}, line {number}"
        if found is None or name is None or not TOKEN.fullmatch(found["token"]):
            raise InvalidOption(f"{place}: it must be NAME: TOKEN, or a token alone, which has {TOKEN_FORM}")
        if name in tokens or found["token"] in tokens.values():
            raise InvalidOption(
                f"{place}: the name or the token is there twice; POLITE_SERVE_TOKEN is one, too, with the name {OPERATOR}"
            )
        tokens[name] = found["token"]
    if not tokens:
        raise InvalidOption(f"--token-file {options.token_file} has no token")
    return tokens


async def _serve(
    options: argparse.Namespace, place: dict[str, Any], tokens: dict[str, str], *, shared: bool
) -> Exit:
    async with interrupts() as interrupt:
        try:
            async with AsyncExitStack() as stack:
                gate = await stack.enter_async_context(_gate(options, shared=shared))
                served = await stack.enter_async_context(
                    serve_gate(
                        gate,
                        **place,
                        tokens=tokens,
                        names=options.name,
                        fetching=fetching_of(options, options.max_bytes),
                        resolver=options.resolve,
                        forward=options.forward,
                        max_permits=options.max_permits,
                        max_connections=_file_limit(),
                        grace=options.grace,
                    )
                )
                print(served.url, flush=True)
                await interrupt.first.wait()
                if gate.inside:
                    complain(
                        f"stopping: waiting for {counted(gate.inside, 'permit')}, {options.grace:g} s at most"
                    )
        except asyncio.CancelledError:
            if interrupt.status is None:
                raise
        except OSError as error:
            if error.filename is not None:
                raise
            why = os.strerror(error.errno) if error.errno else error
            raise InvalidOption(f"--listen {options.listen}: {why}; choose another address") from error
    return interrupt.status or Exit.ALLOWED


def _gate(options: argparse.Namespace, *, shared: bool) -> Any:  # noqa: ANN401 - a context manager
    store, validators = shared_store(options.store) if shared else options.store, None
    if options.recrawl is not None and options.recrawl != store:
        validators = SqliteStore(options.recrawl)
    more = crawl_options(options)
    more["pacing"] = replace(more["pacing"], max_hold=options.max_hold)
    return open_gate(
        options.agent,
        robots=RobotsPolicy(dialect=options.dialect),
        store=store,
        recrawl=None if options.recrawl is None else RecrawlPolicy(),
        validators=validators,
        signer=signer_of(options),
        **more,
    )


def _file_limit() -> int:
    """Return how many connections may be open; permit as many open files as this process may have."""
    try:
        import resource
    except ImportError:  # Windows
        return _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_CONNECTIONS + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(8, most - _OTHER_FILES)
