"""A small aiohttp crawler on a frontier: an example of how to embed polite."""

import asyncio
from html.parser import HTMLParser
from typing import TypedDict

import aiohttp

import polite
from polite.judge.sites import BUSY_S, practice_sites

AGENT = "PoliteDemo/1.0 (+https://polite.test/demo)"
MIN_DELAY_S = 0.3
# Those that answer in the end, with a group of rules for this agent.
HOSTS = practice_sites("PoliteDemo")[2:]
TRIES = 8
WORKERS = 20
# No response (0), or a temporary refusal.
RETRIED = (0, 429, 503)
WAITING = "waiting"


class Policies(TypedDict):
    """The options of open_gate that the demo sets."""

    fetching: polite.FetchPolicy
    robots: polite.RobotsPolicy
    pacing: polite.PacingPolicy


def policies(nameserver: str) -> Policies:
    """Return how the demo crawls, with names resolved by this server."""
    return Policies(
        fetching=polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], nameservers=[nameserver], timeout=10),
        robots=polite.RobotsPolicy(retry_min=BUSY_S),
        pacing=polite.PacingPolicy(min_delay=MIN_DELAY_S, backoff=BUSY_S),
    )


async def crawl(
    gate: polite.Gate, session: aiohttp.ClientSession, seeds: list[str], found: dict[str, int | str]
) -> None:
    """Fetch all allowed pages, and follow their links. `found` gets the status or other outcome of each URL."""
    frontier = polite.Frontier(gate, max_tries=TRIES)
    for seed in seeds:
        await put_new(frontier, found, polite.Target.of(seed), [seed])
    async with asyncio.TaskGroup() as workers:
        for _ in range(WORKERS):
            workers.create_task(work(frontier, session, found))
        await frontier.join()
        frontier.close()
    # The frontier gave these to no worker: they are disallowed, or robots.txt is unreachable.
    for url in [url for url, outcome in found.items() if outcome == WAITING]:
        found[url] = str(await gate.check(url))


async def put_new(
    frontier: polite.Frontier, found: dict[str, int | str], base: polite.Target, links: list[str]
) -> None:
    """Put the links that are new into the frontier."""
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
    """One worker: fetch the tasks that the frontier assigns, and retry those that fail."""
    async for permit in frontier:
        async with permit:
            try:
                status, linked = await fetch(permit, session)
            except (aiohttp.ClientError, TimeoutError):
                status, linked = 0, []
            if status not in RETRIED:
                found[permit.url] = status
                await put_new(frontier, found, permit.task.target, linked)
            elif not permit.retry():
                found[permit.url] = f"given up after {TRIES} tries"


async def fetch(permit: polite.Permit, session: aiohttp.ClientSession) -> tuple[int, list[str]]:
    """Return the status and links of a page. A redirect is a link like any other, and waits for its own turn."""
    async with session.get(permit.request_url, allow_redirects=False) as response:
        permit.report(status=response.status, headers=response.headers)
        body = await response.text(errors="replace")
    return response.status, [*response.headers.getall("Location", []), *links(body)]


def links(body: str) -> list[str]:
    """Return the links of a page, as they are written there."""
    found: list[str] = []

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(value for name, value in attrs if tag == "a" and name == "href" and value)

    Anchors().feed(body)
    return found
