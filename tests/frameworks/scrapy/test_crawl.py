"""A spider as it is, with polite's add-on: what it gets, what the server sees, and what polite does if something fails."""

import asyncio
from types import SimpleNamespace

import pytest
import scrapy
from scrapy.exceptions import IgnoreRequest
from scrapy.extensions.httpcache import FilesystemCacheStorage
from scrapy.http import TextResponse

import polite
from polite.frontier.in_flight import TaskPermit
from polite.gate.fetcher import SignerFailed
from polite.integrations.scrapy import PoliteMiddleware
from polite.integrations.scrapy.turns import WaitingRequests
from tests.frameworks.examples import hops_to_sign, require_signatures
from tests.frameworks.scrapy.crawls import DELAY_S, Noting, Reactor, crawl, judge
from tests.integrations.site import LOOPBACK, Site


def test_pages_keep_the_delay_and_others_get_an_errback_or_need_no_turn(reactor, site, tmp_path):
    urls = [f"{origin}/{page}" for page in ("a", "b", "private/x") for origin in site.urls]
    (tmp_path / "page").write_text("from a file")
    no_turn = ["data:,from%20data", (tmp_path / "page").as_uri()]
    twice = scrapy.Request(site.url("/twice"), dont_filter=True)

    done = crawl(reactor, Noting, [*urls, *no_turn, "http://1.2.3.999/", twice, twice])

    judge(site)
    pages = [*(url for url in urls if "private" not in url), *no_turn, *[twice.url] * 2]
    assert sorted(done.spider.pages) == sorted(pages)
    causes = [error.__cause__ for _, error in done.spider.errors if isinstance(error, IgnoreRequest)]
    assert sorted(type(cause).__name__ for cause in causes) == ["Disallowed"] * 2 + ["InvalidURL"]
    assert any("Disallow: /private (line 2)" in str(error) for _, error in done.spider.errors)
    assert done.counted == {
        "granted": 6,
        "denied": 3,
        "denied/Disallowed": 2,
        "denied/InvalidURL": 1,
        "robots_fetched": 2,
        "robots_fetched/found": 2,
    }
    assert done.stats["finish_reason"] == "finished"


def test_retries_take_turns_and_a_429_backs_off(reactor: Reactor, site: Site) -> None:
    site.refusals = 1
    broken = f"{site.urls[1]}/broken"

    class Retried(Noting):
        async def start(self):
            yield self.request(site.url("/refuse"))
            yield self.request(broken, meta={"max_retry_times": 1})

    # The server asks for 60 s; the policy allows less.
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_retry_after=0.6)
    done = crawl(reactor, Retried, settings={"POLITE": {"fetching": LOOPBACK, "pacing": pacing}})

    judge(site)
    assert done.spider.pages == [site.url("/refuse")]
    assert [url for url, _ in done.spider.errors] == [broken]
    assert sorted(site.paths) == ["/broken"] * 2 + ["/refuse"] * 2
    assert max(site.all_gaps()) >= 0.6
    assert (done.counted["backed_off/429"], done.stats["retry/count"]) == (1, 2)


def test_another_user_agent_is_refused(reactor: Reactor, site: Site) -> None:
    other = scrapy.Request(site.url("/a"), headers={"User-Agent": "Mozilla/5.0"}, dont_filter=True)

    class Errors(Noting):
        async def start(self):
            yield other.replace(callback=self.parse, errback=self.failed)

    done = crawl(reactor, Errors)

    assert site.paths == []
    assert isinstance(done.spider.errors[0][1].__cause__, polite.InvalidUserAgent)
    assert (done.counted["denied/InvalidUserAgent"], done.counted["unsent"]) == (1, 1)


def test_a_site_that_is_down_does_not_keep_the_crawl_open_for_each_of_its_requests(reactor, site):
    site.robots_status = 503
    urls = [site.url(f"/{number}") for number in range(30)]
    done = crawl(reactor, Noting, urls, settings={"RETRY_TIMES": 1, "POLITE": OUT_OF_REACH})

    assert site.paths == []
    assert len(site.hits) <= 4
    assert done.counted["denied/RobotsGivenUp"] == 30
    said = {str(error) for _, error in done.spider.errors}
    assert len(said) == 30
    assert any("given up, since its robots.txt is unreachable (SERVER_ERROR)" in each for each in said)


OUT_OF_REACH = {
    "fetching": LOOPBACK,
    "pacing": polite.PacingPolicy(min_delay=DELAY_S, backoff=0.2, max_backoff=0.4),
    "robots": polite.RobotsPolicy(retry_min=0.3, retry_max=0.5),
}


def test_a_site_whose_robots_txt_is_there_again_is_readmitted(reactor: Reactor, site: Site) -> None:
    class Patient(Noting):
        async def failed(self, failure):
            super().failed(failure)
            site.robots_status = 200
            await asyncio.sleep(0.6)
            yield scrapy.Request(site.url("/again"), self.parse, errback=super().failed)

    site.robots_status = 503
    settings = {"RETRY_TIMES": 0, "POLITE": OUT_OF_REACH}
    done = crawl(reactor, Patient, [site.url("/a")], settings=settings)

    assert done.counted["denied/RobotsGivenUp"] == 1
    assert done.spider.pages == [site.url("/again")]


def test_a_host_whose_budget_is_spent_gets_no_more_requests_and_says_why(reactor: Reactor, site: Site):
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_pages=2)
    urls = [f"{origin}/{number}" for number in range(4) for origin in site.urls]
    done = crawl(reactor, Noting, urls, settings={"POLITE": {"fetching": LOOPBACK, "pacing": pacing}})

    judge(site)
    assert len(done.spider.pages) == 2 * len(site.urls)
    causes = [error.__cause__ for _, error in done.spider.errors]
    assert {(type(cause), cause.option) for cause in causes} == {(polite.OriginDeclined, "max_pages")}
    assert done.counted["denied/OriginDeclined"] == len(urls) - len(done.spider.pages)


# A thousand requests of all kinds: each ends in a callback, in an errback, or in a stat.


class Meddling:
    """Another middleware, which answers, drops and replaces requests before they reach polite's."""

    def process_request(self, request):
        if request.url.endswith("/answered"):
            return scrapy.http.TextResponse(request.url, body=b"mine", encoding="utf-8")
        if request.url.endswith("/dropped"):
            raise IgnoreRequest("not mine")
        if request.url.endswith("/replaced"):
            return request.replace(url=f"{request.url}/other", dont_filter=True)
        return None


def test_what_another_middleware_answers_drops_or_replaces_gives_its_turn_back(reactor: Reactor, site: Site):
    answered, dropped, replaced, page = urls = [
        site.url(f"/{name}") for name in ("answered", "dropped", "replaced", "a")
    ]
    done = crawl(reactor, Noting, urls, settings={"DOWNLOADER_MIDDLEWARES": {Meddling: 400}})

    judge(site)
    assert sorted(done.spider.pages) == sorted([answered, f"{replaced}/other", page])
    assert [url for url, _ in done.spider.errors] == [dropped]
    assert (sorted(site.paths), done.counted["unsent"]) == (["/a", "/replaced/other"], 3)


def test_pages_and_redirects_are_signed(reactor: Reactor, site: Site) -> None:
    options = {"fetching": LOOPBACK, "signer": "tests.frameworks.examples.SIGNER"}
    crawl(reactor, Noting, hops_to_sign(site), settings={"POLITE": options})
    judge(site)
    require_signatures(site)


def test_another_reactor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.integrations.scrapy.turns.is_asyncio_available", lambda: False)
    with pytest.raises(polite.InvalidOption, match="AsyncioSelectorReactor"):
        PoliteMiddleware(SimpleNamespace())


@pytest.mark.parametrize("broken", ["turns.shared_gate", "turns.EngineSlot.wake", ""])
def test_whatever_fails_ends_the_crawl(reactor: Reactor, site: Site, monkeypatch, broken: str) -> None:
    if broken:
        monkeypatch.setattr(f"polite.integrations.scrapy.{broken}", lambda *_: 1 / 0)
    settings = {} if broken else {"POLITE": {"pacing": "slow"}}
    done = crawl(reactor, Noting, [site.url("/a")], settings=settings)
    assert (site.paths, done.stats["finish_reason"]) == ([], "polite_failed")


def test_a_turn_that_comes_when_its_request_is_cancelled_goes_back() -> None:
    left: list[str] = []

    async def main() -> None:
        came = asyncio.Event()

        async def acquire(_):
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


def test_a_cache_that_lost_a_page_or_cannot_be_read_is_no_reason_to_skip_the_turn(reactor, site, tmp_path):
    class Forgetful(FilesystemCacheStorage):
        asked = 0

        def retrieve_response(self, spider, request):
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
    lost, enter = [], TaskPermit.enter

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
    assert (len(lost), sorted(done.spider.pages)) == (2, sorted(urls))
    assert len(site.paths) == 4


def test_a_signer_that_fails_says_nothing_of_the_server_and_a_broken_connection_does(reactor, site):
    pacing = polite.PacingPolicy(min_delay=0.1, circuit_failures=1, circuit_rest=0.2)
    options = {"fetching": LOOPBACK, "signer": "tests.frameworks.examples.SIGNER", "pacing": pacing}
    urls = [site.url("/unsigned"), site.url("/a"), f"{site.urls[1]}/broken"]

    done = crawl(reactor, Noting, urls, settings={"POLITE": options, "RETRY_ENABLED": False})

    judge(site)
    assert done.spider.pages == [site.url("/a")]
    assert SignerFailed in [type(error) for _, error in done.spider.errors]
    assert done.counted["circuits_opened"] == 1


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
