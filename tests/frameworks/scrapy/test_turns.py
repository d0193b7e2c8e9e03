"""What must not happen, and what polite does then: nothing is sent without a permit, and nothing is left."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.extensions.httpcache import FilesystemCacheStorage

import polite
from polite.frontier.in_flight import TaskPermit
from polite.integrations.scrapy import PoliteMiddleware
from polite.integrations.scrapy.turns import EngineSlot, WaitingRequests
from tests.frameworks.scrapy.crawls import Noting, Reactor, crawl, judge, serving
from tests.integrations.site import Site


def test_another_reactor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.integrations.scrapy.turns.is_asyncio_available", lambda: False)

    with pytest.raises(polite.InvalidOption, match="AsyncioSelectorReactor"):
        PoliteMiddleware(SimpleNamespace())


def test_few_requests_have_their_turn_while_the_engine_is_busy(reactor: Reactor) -> None:
    most = 0

    class Counting(Noting):
        def parse(self, response):
            nonlocal most
            super().parse(response)
            most = max(most, self.crawler.get_downloader_middleware(PoliteMiddleware).turns.gate.inside)

    with serving(40) as site:
        urls = [f"{origin}/{number}" for number in range(2) for origin in site.urls]
        done = crawl(reactor, Counting, urls, settings={"CONCURRENT_REQUESTS": 1})
        judge(site)

    assert len(done.spider.pages) == 80
    assert most <= 20


def test_a_pump_that_fails_in_any_way_ends_the_crawl(
    reactor: Reactor, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no engine")

    monkeypatch.setattr(EngineSlot, "wake", broken)
    done = crawl(reactor, Noting, [site.url("/a")])

    assert done.stats["finish_reason"] == "polite_failed"


def test_a_turn_that_comes_when_its_request_is_cancelled_goes_back() -> None:
    left: list[str] = []

    async def main() -> None:
        came = asyncio.Event()

        async def acquire(_: str) -> Any:
            await came.wait()
            return SimpleNamespace(unsent=lambda: left.append("unsent"))

        waiting = WaitingRequests(SimpleNamespace(closing=False))
        request = asyncio.create_task(waiting.acquire(SimpleNamespace(acquire=acquire), "http://a.test/"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        came.set()
        await asyncio.sleep(0)  # the turn is there, and the request has not noticed
        request.cancel()
        await asyncio.wait({request})
        await asyncio.sleep(0)
        assert request.cancelled()

    asyncio.run(main())

    assert left == ["unsent"]


def test_a_gate_that_closes_ends_the_crawl_and_the_next_has_another(reactor: Reactor, site: Site) -> None:
    class ClosesTheGate(Noting):
        async def parse(self, response):
            super().parse(response)
            middleware = self.crawler.get_downloader_middleware(PoliteMiddleware)
            assert "Gate" in repr(middleware)
            await middleware.turns.gate.close()

    urls = [f"{origin}/{number}" for number in range(3) for origin in site.urls]
    own = {"USER_AGENT": "ShortLived/1.0"}

    first = crawl(reactor, ClosesTheGate, urls, settings=own)
    second = crawl(reactor, Noting, urls, settings=own)

    assert first.stats["finish_reason"] == "polite_failed"
    assert 1 <= len(first.spider.pages) <= 2
    assert second.gate is not first.gate
    assert len(second.spider.pages) == 6


def test_a_turn_that_is_lost_is_taken_again(
    reactor: Reactor, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = []
    enter = TaskPermit.enter

    async def lose(permit: TaskPermit) -> TaskPermit:
        if len(lost) < 2:
            lost.append(permit.url)
            permit.unsent()
            raise polite.TurnLost("another process has the origin", url=permit.url)
        return await enter(permit)

    monkeypatch.setattr(TaskPermit, "enter", lose)
    urls = [site.url(f"/{number}") for number in range(4)]
    done = crawl(reactor, Noting, urls)

    judge(site)
    assert len(lost) == 2
    assert sorted(done.spider.pages) == sorted(urls)
    assert len(site.paths) == 4


def test_a_cache_that_cannot_be_read_is_no_reason_to_skip_the_turn(
    reactor: Reactor, site: Site, tmp_path: Path
) -> None:
    class Broken(FilesystemCacheStorage):
        def retrieve_response(self, spider: Any, request: Any) -> None:
            raise OSError("no disk")

    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "HTTPCACHE_STORAGE": Broken}
    done = crawl(reactor, Noting, [site.url("/a"), site.url("/b")], settings=settings)

    judge(site)
    assert done.counted["granted"] == 2
