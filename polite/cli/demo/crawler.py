"""A small aiohttp crawler on a frontier: what embedding polite looks like."""

import asyncio
from html.parser import HTMLParser

import aiohttp
from yarl import URL

import polite

TRIES = 8
WORKERS = 20
# No answer at all, or one that says: not now.
AGAIN = (0, 429, 503)
WAITING = "waiting"


async def crawl(
    gate: polite.Gate, session: aiohttp.ClientSession, seeds: list[str], found: dict[str, int | str]
) -> None:
    """Fetch what may be fetched, and follow its links; `found` says of each URL its status, or what else became of it."""
    frontier = polite.Frontier(gate, max_tries=TRIES)
    for seed in seeds:
        await meet(frontier, found, polite.Target.of(seed), [seed])
    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(work(frontier, session, found))
        await frontier.join()
        frontier.close()
    # What was never given out: the rules do not allow it, or cannot be had.
    for url in [url for url, became in found.items() if became == WAITING]:
        found[url] = str(await gate.check(url))


async def meet(
    frontier: polite.Frontier, found: dict[str, int | str], base: polite.Target, links: list[str]
) -> None:
    """Put what is met for the first time into the queue."""
    for link in links:
        try:
            target = base.join(link)
        except polite.InvalidURL:
            continue
        if target.origin.scheme in ("http", "https") and target.url not in found:
            found[target.url] = WAITING
            await frontier.put(target.url)


async def work(
    frontier: polite.Frontier, session: aiohttp.ClientSession, found: dict[str, int | str]
) -> None:
    """One of many: fetch what the frontier gives, each page in its origin's turn. What fails is tried again, in its turn."""
    async for permit in frontier:
        async with permit:
            try:
                status, linked = await fetch(permit, session)
            except (aiohttp.ClientError, TimeoutError):
                status, linked = 0, []
            if status not in AGAIN:
                found[permit.url] = status
                await meet(frontier, found, permit.task.target, linked)
            elif not permit.retry():
                found[permit.url] = f"given up after {TRIES} tries"


async def fetch(permit: polite.Permit, session: aiohttp.ClientSession) -> tuple[int, list[str]]:
    """One page: its status, and what it links to. A redirect is a link like any other: it waits for its own turn."""
    async with session.get(URL(permit.url, encoded=True), allow_redirects=False) as response:
        permit.report(status=response.status, headers=response.headers)
        body = await response.text(errors="replace")
    return response.status, [*response.headers.getall("Location", []), *links(body)]


def links(body: str) -> list[str]:
    """What a page links to, as it is written there."""
    found: list[str] = []

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(value for name, value in attrs if tag == "a" and name == "href" and value)

    Anchors().feed(body)
    return found
