"""`python -m tests.many.process WORLD --port PORT --name NAME --store URL`: one crawler of a shared crawl, as a user writes it.

It puts all first pages, follows the links, and ends when the crawl is over. Each page is requested only if `permit.require()`,
called when the connection is there, raises nothing. It exits with EMPTIED if the store was emptied.
"""

import argparse
import asyncio
import contextlib
import re
import sys
from types import SimpleNamespace

import aiohttp

import polite
from polite.events import StoreAway, StoreBack
from tests.many.world import World

CRAWL = "many"
EMPTIED = 3
WORKERS = 40
_HREF = re.compile(r'href="([^"]{1,2000})"')


class Process:
    def __init__(self, options: argparse.Namespace) -> None:
        self._world: World = options.world
        self._port: int = options.port
        self._agent = f"ManyBot/1.0 (process {options.name})"
        self._shared = {"store": options.store, "crawl": CRAWL}

    async def run(self) -> None:
        async with (
            polite.open_gate(
                self._agent,
                pacing=polite.PacingPolicy(min_delay=self._world.policy_delay_s),
                fetching=polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], timeout=20),
                listener=_tell,
                lease=self._world.lease_s,
                **self._shared,
            ) as gate,
            self._session() as session,
            polite.open_frontier(gate, max_tries=50, **self._shared) as frontier,
        ):
            await frontier.put_many(self._world.seeds(self._port))
            async with asyncio.TaskGroup() as group:
                for _ in range(WORKERS):
                    group.create_task(self._work(frontier, session))
                await frontier.join()
                frontier.close()

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
            middlewares=(send_once,),
        )

    async def _work(self, frontier: polite.Frontier, session: aiohttp.ClientSession) -> None:
        async for permit in frontier:
            with contextlib.suppress(polite.TurnLost, aiohttp.ClientError, TimeoutError):
                async with permit:
                    links = await self._fetch(permit, session)
                    # The end of the page is told after the URLs that were found on it.
                    await frontier.put_many(links)

    async def _fetch(self, permit: polite.Permit, session: aiohttp.ClientSession) -> list[str]:
        url = permit.request_url
        async with session.get(url, allow_redirects=False, trace_request_ctx=permit) as response:
            permit.report(status=response.status, headers=response.headers)
            return _HREF.findall(await response.text())


def _tell(event: object) -> None:
    if isinstance(event, StoreAway | StoreBack):
        print(event, file=sys.stderr, flush=True)


async def send_once(request, handler):
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
    parser.add_argument("--store", required=True)
    status = 0
    try:
        asyncio.run(Process(parser.parse_args()).run())
    except* polite.StoreEmptied as emptied:
        print(f"emptied: {emptied.exceptions[0]}", file=sys.stderr)
        status = EMPTIED
    return status


if __name__ == "__main__":
    sys.exit(main())
