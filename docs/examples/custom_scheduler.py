"""A scheduler of your own: news first, then short URLs. It decides the order; the gate decides the time."""

import asyncio
from heapq import heappop, heappush

import polite
from polite.testing import Reply, ScriptedTransport

RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 0.5\n"
PAGES = ["/about-us-and-our-history", "/news/today", "/a", "/private/diary", "/news/archive/1999"]


class NewsFirst:
    """Three methods. Each origin has a heap of tasks, and one more heap holds the best task of each ready origin."""

    def __init__(self) -> None:
        self._tasks: dict[polite.Origin, list[tuple[bool, int, int, polite.Task]]] = {}
        self._ready: list[tuple[tuple[bool, int, int, polite.Task], polite.Origin]] = []

    def add(self, task: polite.Task) -> None:
        path = task.target.path
        entry = (not path.startswith("/news/"), len(path), task.number, task)
        heappush(self._tasks.setdefault(task.origin, []), entry)

    def ready(self, origin: polite.Origin) -> None:
        heappush(self._ready, (self._tasks[origin][0], origin))

    def next(self) -> polite.Task:
        _, origin = heappop(self._ready)
        tasks = self._tasks[origin]
        task = heappop(tasks)[3]
        if not tasks:
            del self._tasks[origin]
        return task


async def main() -> None:
    """Crawl without a network: robots.txt comes from a script, and a page is printed instead of fetched."""
    hosts = ["https://one.example", "https://two.example"]
    site = ScriptedTransport({f"{host}/robots.txt": Reply(200, RULES) for host in hosts})
    async with polite.open_gate(
        "ExampleBot/1.0", pacing=polite.PacingPolicy(min_delay=0.1), transports={"https": site}
    ) as gate:
        frontier = polite.Frontier(gate, scheduler=NewsFirst())
        await frontier.put_many(host + page for page in PAGES for host in hosts)
        frontier.close()
        start = asyncio.get_running_loop().time()
        async for permit in frontier:
            async with permit:
                print(f"{asyncio.get_running_loop().time() - start:.1f} s", permit.url)
                permit.report(status=200)
        print(f"{frontier.done} done, {frontier.refused} refused by robots.txt")


if __name__ == "__main__":
    asyncio.run(main())
