"""A list of URLs crawled by Chromium with a page for each host: alone, or with polite.

`python -m benchmarks.crawlers.with_playwright HOSTS PAGES DELAY PORT WAY FILE`: writes the CPU seconds of the crawl in Python,
without those of the browser, to FILE. WAY is one of:

`sleep`: each page sleeps for DELAY after a response. No robots.txt.
`none`: no delay, and no robots.txt.
`polite`: a context with a guard.
"""

import asyncio
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import polite
from benchmarks.hosts import urls

AGENT = "politebench/1.0"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


async def main(wanted: list[str], hosts: int, delay: float, way: str) -> float:
    """Crawl. Return the CPU seconds since the browser was started."""
    from playwright.async_api import Error, async_playwright

    from polite.integrations.playwright import guard

    pacing, fetching = polite.PacingPolicy(min_delay=delay), polite.FetchPolicy(allow_private=True)
    async with polite.open_gate(AGENT, pacing=pacing, fetching=fetching) as gate, async_playwright() as play:
        browser = await play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        context = await browser.new_context(user_agent=AGENT)
        guarded = await guard(context, gate) if way == "polite" else None

        async def crawl(page: Any, wanted: list[str]) -> None:
            for url in wanted:
                with suppress(Error, polite.Disallowed):
                    await (page.goto(url) if guarded is None else guarded.goto(page, url))
                if way == "sleep":
                    await asyncio.sleep(delay)

        pages = [await context.new_page() for _ in range(hosts)]
        started = time.process_time()
        await asyncio.gather(*(crawl(page, wanted[host::hosts]) for host, page in enumerate(pages)))
        cpu = time.process_time() - started
        await browser.close()
        return cpu


if __name__ == "__main__":
    hosts, pages, port = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4])
    way, file = sys.argv[5:]
    cpu = asyncio.run(main(urls(hosts, pages, port), hosts, float(sys.argv[3]), way))
    Path(file).write_text(str(cpu))
