"""`python -m tests.many.process WORLD --port PORT --name NAME [--store URL]`: one crawler of a shared crawl, as a user writes it.

It puts all first pages, follows the links, and ends when the crawl is over. `--permits SECONDS`: a gate alone, without a frontier,
requests random pages for so long. `--alone`: nothing is shared. Each page of it is sent only if `permit.require()`, called when
the connection is there, raises nothing. At its end it prints what it saw as JSON; it exits with EMPTIED if the store was emptied.
"""

import argparse
import asyncio
import contextlib
import json
import random
import re
import sys
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import aiohttp

import polite
from polite.clock import SystemClock
from polite.events import StoreAway, StoreBack
from tests.many.world import World

CRAWL = "many"
EMPTIED = 3
WORKERS = 40
_HREF = re.compile(r'href="([^"]{1,2000})"')
_SHORTEST_S, _LONGEST_S = 0.0, 0.3


class SetClock(SystemClock):
    """A machine whose wall clock is wrong."""

    def __init__(self, off_s: float) -> None:
        self._off_s = off_s

    def wall(self) -> float:  # type: ignore[override]
        return time.time() + self._off_s


class Process:
    """One crawler: what it shares, and what it counted."""

    def __init__(self, world: World, options: argparse.Namespace) -> None:
        self._world = world
        self._options = options
        self._agent = f"ManyBot/1.0 (process {options.name})"
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        async with self._gate() as gate, self._session() as session:
            if self._options.permits:
                await self._permits(gate, session)
            else:
                await self._crawl(gate, session)

    def _gate(self) -> Any:
        shared: dict[str, Any] = {}
        if not self._options.alone:
            shared = {"store": self._options.store, "crawl": CRAWL, "lease": self._world.lease_s}
        return polite.open_gate(
            self._agent,
            pacing=polite.PacingPolicy(min_delay=self._world.policy_delay_s),
            fetching=polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], timeout=20),
            clock=SetClock(self._options.wall) if self._options.wall else None,
            listener=self._tell,
            **shared,
        )

    def _session(self) -> aiohttp.ClientSession:
        """A client that looks at the permit when the connection is there, immediately before it writes the request."""

        async def require(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
            context.trace_request_ctx.require()

        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(require)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, resolver=aiohttp.ThreadedResolver()),
            headers={"User-Agent": self._agent},
            timeout=aiohttp.ClientTimeout(total=30),
            trace_configs=[trace],
            middlewares=(_send_once,),
        )

    def _tell(self, event: object) -> None:
        self.counts[type(event).__name__] += 1
        if isinstance(event, StoreAway | StoreBack):
            print(event, file=sys.stderr, flush=True)

    async def _crawl(self, gate: polite.Gate, session: aiohttp.ClientSession) -> None:
        shared = {} if self._options.alone else {"store": self._options.store, "crawl": CRAWL}
        async with polite.open_frontier(gate, max_tries=50, **shared) as frontier:
            await frontier.put_many(self._world.seeds(self._options.port))
            async with asyncio.TaskGroup() as group:
                for _ in range(WORKERS):
                    group.create_task(self._work(frontier, session))
                await frontier.join()
                frontier.close()

    async def _work(self, frontier: polite.Frontier, session: aiohttp.ClientSession) -> None:
        async for permit in frontier:
            with contextlib.suppress(polite.TurnLost, aiohttp.ClientError, TimeoutError):
                async with permit:
                    links = await self._fetch(permit, session)
                    # The end of the page is told after the URLs that were found on it.
                    await frontier.put_many(links)

    async def _permits(self, gate: polite.Gate, session: aiohttp.ClientSession) -> None:
        rng = random.Random(self._options.name)
        until = time.monotonic() + self._options.permits

        async def work() -> None:
            while time.monotonic() < until:
                url = self._world.url(
                    rng.randrange(self._world.hosts), rng.randrange(self._world.pages), self._options.port
                )
                with contextlib.suppress(polite.TurnLost, aiohttp.ClientError, TimeoutError):
                    async with (
                        asyncio.timeout(max(0.0, until - time.monotonic())),
                        gate.permit(url) as permit,
                    ):
                        await self._fetch(permit, session)
                await asyncio.sleep(rng.uniform(_SHORTEST_S, _LONGEST_S))

        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work())

    async def _fetch(self, permit: polite.Permit, session: aiohttp.ClientSession) -> list[str]:
        url = permit.request_url
        async with session.get(url, allow_redirects=False, trace_request_ctx=permit) as response:
            permit.report(status=response.status, headers=response.headers)
            body = await response.text()
        self.counts["fetched"] += 1
        return _HREF.findall(body)


async def _send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """aiohttp repeats a GET that was cut off, at once. No permit was given for that."""
    try:
        return await handler(request)
    except aiohttp.ServerDisconnectedError as error:
        raise aiohttp.ClientPayloadError(str(error)) from error


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("world", type=World.read)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--store", default="")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--permits", type=float, default=0.0, help="seconds")
    parser.add_argument("--wall", type=float, default=0.0, help="seconds by which the wall clock is wrong")
    options = parser.parse_args()
    process = Process(options.world, options)
    status = 0
    try:
        asyncio.run(process.run())
    except* polite.StoreEmptied as emptied:
        print(f"emptied: {emptied.exceptions[0]}", file=sys.stderr)
        status = EMPTIED
    print(json.dumps(process.counts), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
