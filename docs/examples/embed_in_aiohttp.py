"""A crawler on aiohttp that awaits polite before each request. It crawls a small site that it serves itself, on loopback."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

import polite
from polite.integrations.aiohttp import send_once

AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
SITE = {
    "/robots.txt": "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.2\n",
    "/": '<a href="/news">News</a> <a href="/private/diary">Diary</a>',
    "/news": '<a href="/">Home</a> <a href="/news/today?page=1">Today</a>',
    "/news/today?page=1": "Nothing happened.",
    "/private/diary": "Dear diary, this page is private.",
}
HREF = re.compile(r'href="([^"]{1,2000})"')


async def crawl(gate: polite.Gate, session: aiohttp.ClientSession, start: str) -> None:
    """Fetch the pages of a site one after the other: all that links lead to and robots.txt allows."""
    waiting, seen = [start], {start}
    while waiting:
        page = polite.Target.of(waiting.pop(0))
        try:
            body = await fetch(gate, session, page.url)
        except polite.Disallowed as refusal:
            print("  -", page.path, "is", refusal.decision)
            continue
        print("200", page.path)
        links = [page.join(link).url for link in HREF.findall(body)]
        new = [link for link in dict.fromkeys(links) if link not in seen]
        seen.update(new)
        waiting += new


async def fetch(gate: polite.Gate, session: aiohttp.ClientSession, url: str) -> str:
    """Fetch one page in its turn. Raises polite.Disallowed if robots.txt disallows it."""
    async with (
        gate.permit(url) as permit,
        # A redirect would be another request. It needs a permit of its own.
        session.get(permit.request_url, allow_redirects=False) as response,
    ):
        permit.report(status=response.status, headers=response.headers)
        return await response.text()


@asynccontextmanager
async def site() -> AsyncIterator[str]:
    """Serve the site during the block, and give its address."""

    async def answer(request: web.BaseRequest) -> web.Response:
        text = SITE.get(request.raw_path)
        return web.Response(status=200 if text else 404, text=text or "no such page")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def main() -> None:
    """Permit loopback, which is blocked by default as a private address. Real crawlers do not need that."""
    loopback = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])
    pacing = polite.PacingPolicy(min_delay=0.1)
    async with (
        site() as start,
        polite.open_gate(AGENT, fetching=loopback, pacing=pacing) as gate,
        aiohttp.ClientSession(headers={"User-Agent": AGENT}, middlewares=[send_once]) as session,
    ):
        await crawl(gate, session, start)
        print((await gate.explain(start)).pause.because)


if __name__ == "__main__":
    asyncio.run(main())
