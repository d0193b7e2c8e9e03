"""A second crawl of an unchanged site is answered by 304s: a real server judges, and a file is all that is left of the first."""

from collections import Counter
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

import polite
from polite.stores.sqlite import SqliteStore

AGENT = "TestBot/1.0 (+https://bot.test)"
PAGES = 200


class Site:
    """Pages with strong tags, weak tags, dates, or both; one in fifty has neither. It logs the status of each response."""

    def __init__(self) -> None:
        self.versions = [1] * PAGES
        self.statuses: Counter[int] = Counter()

    async def answer(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        version = self.versions[number]
        response = web.Response(text=f"page {number} of version {version}")
        if number % 50 == 0:
            self.statuses[200] += 1
            return response
        if number % 3 < 2:
            response.headers["ETag"] = f'{"W/" * (number % 3)}"{number}-{version}"'
        if number % 2 or number % 3 == 2:
            response.headers["Last-Modified"] = formatdate(1_000_000_000 + 60 * version, usegmt=True)
        if self._unchanged(request, response):
            response = web.Response(status=304, headers=response.headers)
        self.statuses[response.status] += 1
        return response

    def _unchanged(self, request: web.Request, response: web.Response) -> bool:
        """RFC 9110, 13.2.2: If-None-Match first, and the date only without it."""
        tag = request.headers.get("If-None-Match")
        if tag is not None:
            return tag == response.headers.get("ETag")
        since = request.headers.get("If-Modified-Since")
        return since is not None and since == response.headers.get("Last-Modified")


@pytest.fixture
async def site() -> AsyncIterator[tuple[Site, str]]:
    site, app = Site(), web.Application()
    app.router.add_get("/{number:\\d+}", site.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    listening = web.TCPSite(runner, "127.0.0.1", 0)
    await listening.start()
    yield site, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def crawl(root: str, copies: dict[str, str], **options: Any) -> list[float]:
    """Fetch all pages as a crawler does that has `copies` of an earlier run. Return when they are due."""
    due: list[float] = []
    async with (
        polite.open_gate(
            AGENT,
            recrawl=polite.RecrawlPolicy(),
            pacing=polite.PacingPolicy(min_delay=0),
            fetching=polite.FetchPolicy(allow_private=True),
            **options,
        ) as gate,
        aiohttp.ClientSession(
            headers={"User-Agent": AGENT}, connector=aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
        ) as session,
    ):
        frontier = polite.Frontier(gate)
        for number in range(PAGES):
            await frontier.put(f"{root}/{number}")
        frontier.close()
        async for permit in frontier:
            async with permit:
                known = await gate.conditional(permit.url)
                async with session.get(permit.url, headers=known, allow_redirects=False) as response:
                    permit.report(status=response.status, headers=response.headers)
                    if response.status == 200:
                        copies[permit.url] = await response.text()
            due.append(permit.due)
    return due


@pytest.mark.slow("a crawl of a large site")
@pytest.mark.parametrize("option", ["store", "validators"])
async def test_a_second_crawl_of_an_unchanged_site_is_nearly_all_304s(
    site: tuple[Site, str], tmp_path: Path, option: str
) -> None:
    pages, root = site
    file = tmp_path / "crawl.sqlite"
    copies: dict[str, str] = {}
    runs = []
    for version in (1, 1, 2):
        pages.versions[7], pages.statuses = version, Counter()
        due = await crawl(root, copies, **{option: SqliteStore(file)})
        assert len(due) == PAGES
        runs.append(pages.statuses)

    first, second, third = runs
    assert first == {200: PAGES}
    assert second[304] >= 0.95 * PAGES
    assert second == {200: PAGES // 50, 304: PAGES - PAGES // 50}
    assert third == {200: PAGES // 50 + 1, 304: PAGES - PAGES // 50 - 1}
    assert copies == {
        f"{root}/{number}": f"page {number} of version {1 + (number == 7)}" for number in range(PAGES)
    }
