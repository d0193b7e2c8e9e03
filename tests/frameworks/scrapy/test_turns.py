"""What must not happen, and what polite does then: nothing is sent without a permit, and nothing is left."""

import asyncio
import gc
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.extensions.httpcache import FilesystemCacheStorage

import polite
from polite.frontier.permit import TaskPermit
from polite.integrations.scrapy import PoliteMiddleware, PoliteQueue
from polite.integrations.scrapy.engine import EngineSlot, WaitingRequests
from tests.frameworks.scrapy.crawls import Noting, Reactor, crawl, judge, serving
from tests.integrations.site import LOOPBACK, Site

ROOT = Path(__file__).parents[3]


def test_without_scrapy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scrapy", None)

    with pytest.raises(ImportError, match=r"polite-crawl\[scrapy\]"):
        runpy.run_path(str(ROOT / "polite/integrations/scrapy/__init__.py"))


def test_another_reactor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.integrations.scrapy.turns.is_asyncio_available", lambda: False)

    with pytest.raises(polite.InvalidOption, match="AsyncioSelectorReactor"):
        PoliteMiddleware(SimpleNamespace())


def test_a_queue_without_the_middleware_is_refused(reactor: Reactor) -> None:
    with pytest.raises(polite.InvalidOption, match="needs PoliteMiddleware"):
        crawl(reactor, Noting, settings={"ADDONS": {}, "SCHEDULER_PRIORITY_QUEUE": PoliteQueue})


def test_a_negative_delay_is_refused(reactor: Reactor) -> None:
    with pytest.raises(polite.InvalidOption, match="POLITE_DELAY"):
        crawl(reactor, Noting, settings={"POLITE_DELAY": -1})


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


@pytest.mark.parametrize("refused", [False, True])
def test_a_turn_that_comes_when_its_request_is_cancelled_goes_back(*, refused: bool) -> None:
    left: list[str] = []
    complaints: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        came = asyncio.Event()

        async def acquire(_: str) -> Any:
            await came.wait()
            if refused:
                raise polite.GateClosed("closed")
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
        del request
        gc.collect()

    asyncio.run(main())

    assert left == ([] if refused else ["unsent"])
    assert complaints == []


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


def test_circuits_are_counted(reactor: Reactor, site: Site) -> None:
    pacing = polite.PacingPolicy(min_delay=0.1, circuit_failures=1, circuit_rest=0.2)
    settings = {"POLITE": {"fetching": LOOPBACK, "pacing": pacing}, "RETRY_ENABLED": False}
    done = crawl(reactor, Noting, [site.url("/broken"), site.url("/a")], settings=settings)

    assert done.counted["circuits_opened"] >= 1
    assert done.spider.pages == [site.url("/a")]


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
