"""The long crawl: every origin again and again, half by permits and half through a frontier, with a look at its own process."""

import asyncio
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import aiohttp

import polite
from docs.examples.demo.dns_server import dns_server
from polite.transports.resolver import Resolver
from tests.many.process import send_once
from tests.system.soaking.judge import Sample, growth, offences, read_request, summary
from tests.system.soaking.server import ADDRESS, FORBIDDEN, MIN_DELAY_S, ORIGINS, PAGES, TTL_S, name

ROOT = Path(__file__).resolve().parents[3]
AGENT = "SoakBot/1.0 (+https://bot.test)"
_SAMPLE_EVERY_S = 2.0
_WORKERS = 200
_SHOWN = 20


async def run(seconds: float) -> int:
    """Crawl for so long; 0 when it was flat and polite to the end, 1 when not."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "hits"
        command = [sys.executable, "-m", "tests.system.soaking.server", str(log)]
        server = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = int(await server.stdout.readline())
            samples = await _crawl(port, seconds, Path(folder) / "crawl.sqlite")
        finally:
            server.stdin.close()
            await server.wait()
        hits = [read_request(line) for line in log.read_text().splitlines()]
    print(summary(samples, hits, seconds))
    wrong = growth(samples, seconds) + offences(hits)
    for what in wrong[:_SHOWN]:
        print(f"wrong: {what}")
    print(
        f"{len(wrong)} things wrong"
        if wrong
        else "flat, and no gap too short, nothing fetched that is forbidden"
    )
    return bool(wrong)


async def _crawl(port: int, seconds: float, store: Path) -> list[Sample]:
    addresses = {name(number): ADDRESS for number in range(ORIGINS)}
    samples: list[Sample] = []
    async with dns_server(addresses) as names:
        fetching = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], nameservers=[names])
        robots = polite.RobotsPolicy(
            default_ttl=TTL_S, min_ttl=TTL_S, max_ttl=TTL_S, retry_min=MIN_DELAY_S, retry_max=TTL_S
        )
        pacing = polite.PacingPolicy(min_delay=MIN_DELAY_S, backoff=MIN_DELAY_S, max_backoff=TTL_S)
        connector = aiohttp.TCPConnector(resolver=Resolver((names,)), limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=30)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, middlewares=(send_once,)) as session,
            polite.open_gate(AGENT, robots=robots, pacing=pacing, fetching=fetching, store=store) as gate,
        ):
            crawler = Crawler(gate, polite.Frontier(gate, max_robots_tries=1_000_000), session, port)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds), asyncio.TaskGroup() as tasks:
                    tasks.create_task(_watch(samples))
                    for number in range(0, ORIGINS, 2):
                        tasks.create_task(crawler.by_permits(number))
                    tasks.create_task(crawler.fill())
                    for _ in range(_WORKERS):
                        tasks.create_task(crawler.from_frontier())
    return samples


class Crawler:
    """Asks for the same pages for ever; what a server does about it is all the same to it."""

    def __init__(self, gate, frontier, session, port):
        self._gate, self._frontier, self._session = gate, frontier, session
        self._port = port

    def urls(self, number: int) -> list[str]:
        """Of one origin; the last is forbidden at most."""
        paths = [*(f"/page/{page}" for page in range(PAGES)), FORBIDDEN]
        return [f"http://{name(number)}:{self._port}{path}" for path in paths]

    async def by_permits(self, number: int) -> None:
        """One origin, page after page."""
        while True:
            for url in self.urls(number):
                try:
                    async with self._gate.permit(url) as permit:
                        await self._fetch(permit)
                except polite.RobotsUnreachable as refusal:
                    await asyncio.sleep(refusal.retry_after_s)
                except polite.Disallowed:
                    pass

    async def fill(self) -> None:
        """The other half of the origins; what was done is put again."""
        for number in range(1, ORIGINS, 2):
            await self._frontier.put_many(self.urls(number))

    async def from_frontier(self) -> None:
        async for permit in self._frontier:
            async with permit:
                await self._fetch(permit)
            await self._frontier.put(permit.url, again=True)

    async def _fetch(self, permit: polite.Permit) -> None:
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self._session.get(permit.request_url, allow_redirects=False) as response:
                permit.report(status=response.status, headers=response.headers)
                await response.read()


async def _watch(samples: list[Sample]) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(_SAMPLE_EVERY_S)
        measured = {
            # proc(5): the second field of statm, in pages.
            "memory in octets": int(Path("/proc/self/statm").read_text().split()[1]) * 4_096,
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "tasks": len(asyncio.all_tasks()),
            "threads": threading.active_count(),
        }
        samples.append(Sample(time.monotonic() - started, measured))
