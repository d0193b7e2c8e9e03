"""What must not happen, and what polite does then: nothing is sent without a permit, and nothing is left."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.extensions.httpcache import FilesystemCacheStorage
from scrapy.http import TextResponse

import polite
from polite.frontier.in_flight import TaskPermit
from polite.integrations.scrapy import PoliteMiddleware
from polite.integrations.scrapy.turns import WaitingRequests
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


@pytest.mark.parametrize("broken", ["turns.shared_gate", "turns.EngineSlot.wake", ""])
def test_whatever_fails_ends_the_crawl(reactor: Reactor, site: Site, monkeypatch, broken: str) -> None:
    if broken:
        monkeypatch.setattr(f"polite.integrations.scrapy.{broken}", lambda *_: 1 / 0)
    settings = {} if broken else {"POLITE": {"pacing": "slow"}}
    done = crawl(reactor, Noting, [site.url("/a")], settings=settings)

    assert site.paths == []
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


def test_a_cache_that_lost_a_page_or_cannot_be_read_is_no_reason_to_skip_the_turn(reactor, site, tmp_path):
    class Forgetful(FilesystemCacheStorage):
        asked = 0

        def retrieve_response(self, spider: Any, request: Any) -> Any:
            self.asked += 1
            if request.url.endswith("/b"):
                raise OSError("no disk")
            return TextResponse(request.url) if self.asked % 2 else None

    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path), "HTTPCACHE_STORAGE": Forgetful}
    for paths in (["/a", "/private/x"], ["/b"]):
        done = crawl(reactor, Noting, [site.url(path) for path in paths], settings=settings)
        assert done.counted["granted"] == 1

    judge(site)
    assert site.paths == ["/a", "/b"]


def test_a_turn_that_is_lost_is_taken_again(reactor: Reactor, site: Site, monkeypatch: pytest.MonkeyPatch):
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
