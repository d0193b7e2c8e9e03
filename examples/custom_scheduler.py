"""A scheduler of one's own: news before all else, then short addresses; it decides the order, the gate the time."""

import asyncio
from heapq import heappop, heappush

import polite
from polite.frontier.frontier import Frontier
from polite.robots.fetching.exchange import Reply
from polite.task import Task
from polite.testing import ScriptedTransport

RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 0.5\n"
PAGES = ["/about-us-and-our-history", "/news/today", "/a", "/private/diary", "/news/archive/1999"]


class NewsFirst:
    """Three methods. Each origin has a heap of its own; of those that are ready the one with the best task is chosen."""

    def __init__(self) -> None:
        self._tasks: dict[polite.Origin, list[tuple[bool, int, int, Task]]] = {}
        self._ready: list[tuple[tuple[bool, int, int, Task], polite.Origin]] = []

    def add(self, task: Task) -> None:
        path = task.target.path
        entry = (not path.startswith("/news/"), len(path), task.number, task)
        heappush(self._tasks.setdefault(task.origin, []), entry)

    def ready(self, origin: polite.Origin) -> None:
        heappush(self._ready, (self._tasks[origin][0], origin))

    def next(self) -> Task:
        _, origin = heappop(self._ready)
        tasks = self._tasks[origin]
        task = heappop(tasks)[3]
        if not tasks:
            del self._tasks[origin]
        return task


async def main() -> None:
    """No network: robots.txt comes from a script, and fetching is printing."""
    hosts = ["https://one.example", "https://two.example"]
    site = ScriptedTransport({f"{host}/robots.txt": Reply(200, RULES) for host in hosts})
    async with polite.open_gate(
        "ExampleBot/1.0", pacing=polite.PacingPolicy(min_delay=0.1), transports={"https": site}
    ) as gate:
        frontier = Frontier(gate, scheduler=NewsFirst())
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
