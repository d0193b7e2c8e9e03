"""Runs spiders with polite's add-on on a reactor of Scrapy's default kind, in a thread, and judges them at the server."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerRunner, Crawler

import polite
from polite.integrations.scrapy import PoliteMiddleware
from tests.integrations.site import AGENT, LOOPBACK, Site, served_in_a_thread

DELAY_S = 0.1
SETTINGS = {
    "ADDONS": {"polite.integrations.scrapy.Addon": 300},
    "USER_AGENT": AGENT,
    "POLITE": {"fetching": LOOPBACK},
    "DOWNLOAD_DELAY": DELAY_S,
    "ROBOTSTXT_OBEY": True,  # as in a new project
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "HTTPERROR_ALLOW_ALL": True,
    "LOG_LEVEL": "WARNING",
}
LIMIT_S = 300


class Reactor:
    """The reactor of the process, in a thread."""

    def __init__(self) -> None:
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,))
        self.thread.start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        from twisted.internet import asyncioreactor

        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        asyncioreactor.install(self.loop)
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.reactor.callWhenRunning(ready.set)
        self.reactor.run(installSignalHandlers=False)
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def call(self, function: Any) -> Any:
        result: Future[Any] = Future()

        async def called() -> None:
            try:
                result.set_result(await function())
            except BaseException as error:
                result.set_exception(error)

        self.loop.call_soon_threadsafe(lambda: setattr(self, "task", self.loop.create_task(called())))
        return result.result(LIMIT_S)

    def stop(self) -> None:
        self.reactor.callFromThread(self.reactor.stop)
        self.thread.join()


@dataclass
class Crawl:
    crawler: Crawler

    @property
    def stats(self) -> dict[str, Any]:
        return self.crawler.stats.get_stats()

    @property
    def counted(self) -> dict[str, int]:
        return {
            name.removeprefix("polite/"): value
            for name, value in self.stats.items()
            if name.startswith("polite/")
        }

    @property
    def spider(self) -> Any:
        return self.crawler.spider

    @property
    def turns(self) -> Any:
        return self.crawler.get_downloader_middleware(PoliteMiddleware).turns

    @property
    def gate(self) -> polite.Gate:
        return self.turns.gate


class Noting(scrapy.Spider):
    name = "noting"

    def __init__(self, urls: Sequence[Any] = (), **options: Any) -> None:
        super().__init__(**options)
        self.urls = urls
        self.pages: list[str] = []
        self.texts: list[str] = []
        self.errors: list[Any] = []

    async def start(self):
        for url in self.urls:
            yield url if isinstance(url, scrapy.Request) else self.request(url)

    def request(self, url: str, **options: Any) -> scrapy.Request:
        return scrapy.Request(url, self.parse, errback=self.failed, **options)

    def parse(self, response, **_):
        self.pages.append(response.url)
        self.texts.append(response.text)

    def failed(self, failure):
        self.errors.append((failure.request.url, failure.value))


def crawl(reactor: Reactor, spider: type, *args: Any, settings: Any = None, **options: Any) -> Crawl:
    (crawled,) = crawl_all(reactor, [(spider, args, options)], settings=settings)
    return crawled


def crawl_all(reactor, spiders, *, settings=None, in_turn=False) -> list[Crawl]:
    crawlers: list[Crawler] = []

    async def run() -> None:
        runner = AsyncCrawlerRunner({**SETTINGS, **(settings or {})})
        tasks = []
        for spider, args, options in spiders:
            crawlers.append(runner.create_crawler(spider))
            tasks.append(runner.crawl(crawlers[-1], *args, **options))
            if in_turn:
                await tasks[-1]
        await asyncio.gather(*tasks)

    reactor.call(run)
    crawls = [Crawl(crawler) for crawler in crawlers]
    for each in crawls:
        if each.crawler.get_downloader_middleware(PoliteMiddleware) is not None and each.gate is not None:
            assert (each.gate.inside, each.gate.waiting) == (0, 0), each.gate
            assert not each.turns._open
            assert not each.turns._taken
    return crawls


def serving(addresses: int = 2) -> AbstractContextManager[Site]:
    return served_in_a_thread(time.monotonic, addresses)


def judge(site: Site, delay: float = DELAY_S) -> None:
    assert min(site.all_gaps(), default=delay) >= delay - 0.001, sorted(site.all_gaps())[:5]
    assert not [hit for hit in site.hits if hit.raw.startswith("/private")]
    assert {hit.agent for hit in site.hits} <= {AGENT}
    robots = [hit.url for hit in site.hits if hit.raw == "/robots.txt"]
    assert len(robots) == len(set(robots))
