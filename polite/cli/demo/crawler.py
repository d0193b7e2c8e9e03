"""A small aiohttp crawler: what embedding the gate looks like."""

import asyncio
from html.parser import HTMLParser

import aiohttp
from yarl import URL

import polite


async def crawl(gate: polite.Gate, session: aiohttp.ClientSession, seeds: list[str]) -> dict[str, int | None]:
    """Fetch what may be fetched and follow its links; gives each URL's status, or None where it was refused."""
    statuses: dict[str, int | None] = {}

    async def visit(url: str) -> None:
        try:
            async with (
                gate.permit(url) as permit,
                session.get(URL(permit.url, encoded=True), allow_redirects=False) as response,
            ):
                permit.report(status=response.status, headers=response.headers)
                body = await response.text(errors="replace")
        except polite.Unreachable as refusal:
            await asyncio.sleep(refusal.retry_after_s)
            return await visit(url)
        except polite.Disallowed:
            return None
        if response.status in (429, 503):
            return await visit(url)
        statuses[url] = response.status
        for link in links(body, base=url):
            if link not in statuses:
                statuses[link] = None
                tasks.create_task(visit(link))
        return None

    async with asyncio.TaskGroup() as tasks:
        for seed in seeds:
            statuses[seed] = None
            tasks.create_task(visit(seed))
    return statuses


def links(body: str, *, base: str) -> list[str]:
    """The links of a page, as URLs to ask for."""
    found: list[str] = []

    class Anchors(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            href = dict(attrs).get("href")
            if tag == "a" and href:
                try:
                    found.append(polite.Target.of(base).join(href).url)
                except polite.InvalidURL:
                    return

    Anchors().feed(body)
    return found
