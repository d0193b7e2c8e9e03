"""A small aiohttp crawler: what embedding the gate looks like."""

import asyncio
from html.parser import HTMLParser

import aiohttp
from yarl import URL

import polite

TRIES = 8
BUSY = (429, 503)
WAITING = "waiting"


async def crawl(
    gate: polite.Gate, session: aiohttp.ClientSession, seeds: list[str], found: dict[str, int | str]
) -> None:
    """Fetch what may be fetched, and follow its links; `found` says of each URL its status, or what else became of it."""

    def meet(base: polite.Target, link: str) -> None:
        try:
            target = base.join(link)
        except polite.InvalidURL:
            return
        if target.origin.scheme in ("http", "https") and target.url not in found:
            found[target.url] = WAITING
            tasks.create_task(follow(target))

    async def follow(target: polite.Target) -> None:
        found[target.url], linked = await visit(gate, session, target.url)
        for link in linked:
            meet(target, link)

    async with asyncio.TaskGroup() as tasks:
        for seed in seeds:
            meet(polite.Target.of(seed), seed)


async def visit(gate: polite.Gate, session: aiohttp.ClientSession, url: str) -> tuple[int | str, list[str]]:
    """What becomes of a URL, and what it links to. The gate makes each try wait as long as the origin needs."""
    for _ in range(TRIES):
        try:
            status, linked = await fetch(gate, session, url)
        except polite.Unreachable as refusal:
            await asyncio.sleep(refusal.retry_after_s)
        except polite.Disallowed as refusal:
            return str(refusal.decision), []
        except (aiohttp.ClientError, TimeoutError):
            continue
        else:
            if status not in BUSY:
                return status, linked
    return f"given up after {TRIES} tries", []


async def fetch(gate: polite.Gate, session: aiohttp.ClientSession, url: str) -> tuple[int, list[str]]:
    """One page, in its turn: its status, and what it links to. A redirect is a link like any other: the gate is asked."""
    async with (
        gate.permit(url) as permit,
        session.get(URL(permit.url, encoded=True), allow_redirects=False) as response,
    ):
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
