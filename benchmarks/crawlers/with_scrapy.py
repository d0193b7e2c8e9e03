"""The same crawl on Scrapy: one request per host at a time and an exact delay; alone, or with polite's add-on.

`python -m benchmarks.crawlers.with_scrapy HOSTS PAGES DELAY PORT [WAY ORDER PLACES FILE]`: WAY is `alone`, `polite`, or
`autothrottle`, which is alone with AutoThrottle and with the retries that are the default. ORDER is
`alternating` (a page of each host in turn) or `hosts` (one host after the other), PLACES is
CONCURRENT_REQUESTS, twice the hosts by default.
The CPU seconds of the crawl are written to FILE.
"""

import sys
import time
from pathlib import Path

import scrapy
from scrapy.crawler import AsyncCrawlerProcess

from benchmarks.hosts import urls

AGENT = "politebench/1.0"


def main(
    hosts: int,
    pages: int,
    delay: float,
    port: int,
    way: str = "alone",
    order: str = "alternating",
    places: int = 0,
    file: str = "",
) -> None:
    wanted = urls(hosts, pages, port)
    if order == "hosts":
        wanted = [url for host in range(hosts) for url in wanted[host::hosts]]

    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self):
            for url in wanted:
                yield scrapy.Request(url, dont_filter=True)

        def parse(self, response):
            pass

    process = AsyncCrawlerProcess(
        {
            "LOG_LEVEL": "CRITICAL",
            "TELNETCONSOLE_ENABLED": False,
            "COOKIES_ENABLED": False,
            "USER_AGENT": AGENT,
            "DOWNLOAD_DELAY": delay,
            "CONCURRENT_REQUESTS": places or 2 * hosts,
            "RETRY_ENABLED": False,
            "REACTOR_THREADPOOL_MAXSIZE": 20,
            "AUTOTHROTTLE_START_DELAY": delay,
            **WAYS[way],
        }
    )
    process.crawl(Pages)
    started = time.process_time()
    process.start()
    if file:
        Path(file).write_text(str(time.process_time() - started))


ALONE = {"ROBOTSTXT_OBEY": True, "DOWNLOAD_DELAY_JITTER": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
POLITE: dict[str, object] = {"ADDONS": {"polite.integrations.scrapy.Addon": 300}}
AUTOTHROTTLE = {"AUTOTHROTTLE_ENABLED": True, "RETRY_ENABLED": True}
WAYS: dict[str, dict] = {"alone": ALONE, "autothrottle": {**ALONE, **AUTOTHROTTLE}, "polite": POLITE}


def prepare() -> None:
    """Import what polite needs before the CPU is measured: it is that of a crawl, not of its start."""
    import polite
    import polite.integrations.scrapy
    import polite.transports.http

    POLITE["POLITE"] = {"fetching": polite.FetchPolicy(allow_private=True, connections=1_000)}


if __name__ == "__main__":
    if "polite" in sys.argv[5:6]:
        prepare()
    hosts, pages, delay, port, *rest = sys.argv[1:]
    way, order, places, file = [*rest, *["alone", "alternating", "0", ""][len(rest) :]]
    main(int(hosts), int(pages), float(delay), int(port), way, order, int(places), file)
