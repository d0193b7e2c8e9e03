"""A spider as it is, with polite's add-on: what it gets, and what the server sees."""

import asyncio

import scrapy
from scrapy.exceptions import IgnoreRequest

import polite
from tests.frameworks.scrapy.crawls import DELAY_S, Noting, Reactor, crawl, gaps, judge, serving
from tests.integrations.site import LOOPBACK, Site


def test_pages_keep_the_delay_and_disallowed_ones_get_an_errback(reactor: Reactor, site: Site) -> None:
    urls = [f"{origin}/{page}" for page in ("a", "b", "c", "private/x") for origin in site.urls]

    done = crawl(reactor, Noting, urls)

    judge(site)
    assert sorted(done.spider.pages) == sorted(url for url in urls if "private" not in url)
    assert sorted(url for url, _ in done.spider.errors) == sorted(url for url in urls if "private" in url)
    for _, error in done.spider.errors:
        assert isinstance(error, IgnoreRequest)
        assert isinstance(error.__cause__, polite.Disallowed)
        assert "Disallow: /private (line 2)" in str(error)
    assert done.counted == {
        "granted": 6,
        "denied": 2,
        "denied/Disallowed": 2,
        "robots_fetched": 2,
        "robots_fetched/found": 2,
    }
    assert done.stats["finish_reason"] == "finished"


def test_each_redirect_hop_is_checked_and_waits(reactor: Reactor, site: Site) -> None:
    urls = [
        f"{site.url('/hop')}?to=/end",
        f"{site.url('/hop/2')}?to=/private/x",
        f"{site.url('/hop/3')}?to={site.urls[1]}/other",
    ]

    done = crawl(reactor, Noting, urls)

    judge(site)
    assert {site.url("/end"), f"{site.urls[1]}/other"} <= set(done.spider.pages)
    assert [type(error.__cause__) for _, error in done.spider.errors] == [polite.Disallowed]


def test_dont_filter_fetches_again_and_the_duplicate_filter_stays(reactor: Reactor, site: Site) -> None:
    spider_urls = [scrapy.Request(site.url("/a"), dont_filter=True) for _ in range(3)]
    repeated = [scrapy.Request(site.url("/b")) for _ in range(3)]

    done = crawl(reactor, Noting, [*spider_urls, *repeated])

    judge(site)
    assert sorted(done.spider.pages) == [site.url("/a")] * 3 + [site.url("/b")] * 1
    assert done.stats["dupefilter/filtered"] == 2


def test_one_object_that_is_yielded_twice_gets_two_turns(reactor: Reactor, site: Site) -> None:
    request = scrapy.Request(site.url("/a"), dont_filter=True)

    done = crawl(reactor, Noting, [request, request])

    judge(site)
    assert done.spider.pages == [site.url("/a")] * 2


class Links(Noting):
    """Callbacks with arguments, and a request by the engine from a callback."""

    def parse(self, response, depth=0):
        super().parse(response)
        if depth < 2:
            yield response.follow(f"/{depth}", self.parse, cb_kwargs={"depth": depth + 1}, priority=depth)
        yield {"depth": depth}


def test_retries_take_turns_and_a_429_backs_off(reactor: Reactor, site: Site) -> None:
    site.refusals = 1
    urls = [
        site.url("/refuse"),
        scrapy.Request(f"{site.urls[1]}/broken", meta={"max_retry_times": 1}, errback=Noting.failed),
    ]
    backing_off = {"POLITE": {"fetching": polite.FetchPolicy(allow_private=True)}}

    class Retried(Noting):
        async def start(self):
            yield self.request(urls[0])
            yield self.request(urls[1].url, meta={"max_retry_times": 1})

    # The server asks for 60 s; the policy allows less.
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_retry_after=0.6)
    backing_off["POLITE"]["pacing"] = pacing
    done = crawl(reactor, Retried, settings=backing_off)

    judge(site)
    assert done.spider.pages == [site.url("/refuse")]
    assert [url for url, _ in done.spider.errors] == [f"{site.urls[1]}/broken"]
    assert site.paths.count("/broken") == 2
    assert site.paths.count("/refuse") == 2
    assert max(gaps(site)) >= 0.6
    assert done.counted["backed_off/429"] == 1
    assert done.stats["retry/count"] == 2


def test_a_head_starts_the_delay_and_the_body_keeps_the_turn(reactor: Reactor, site: Site) -> None:
    done = crawl(reactor, Noting, [site.url("/stream"), site.url("/a")])

    judge(site)
    assert len(done.spider.pages) == 2


def test_another_user_agent_is_refused(reactor: Reactor, site: Site) -> None:
    other = scrapy.Request(site.url("/a"), headers={"User-Agent": "Mozilla/5.0"}, dont_filter=True)

    class Errors(Noting):
        async def start(self):
            yield other.replace(callback=self.parse, errback=self.failed)

    done = crawl(reactor, Errors)

    assert site.paths == []
    assert isinstance(done.spider.errors[0][1].__cause__, polite.InvalidUserAgent)
    assert done.counted["denied/InvalidUserAgent"] == 1
    assert done.counted["unsent"] == 1


def test_data_and_file_urls_need_no_turn(reactor: Reactor, tmp_path) -> None:
    (tmp_path / "page").write_text("from a file")
    done = crawl(reactor, Noting, ["data:,from data", (tmp_path / "page").as_uri()])

    assert sorted(done.spider.texts) == ["from a file", "from data"]
    assert done.counted == {}


def test_a_host_without_robots_txt_in_reach_is_given_up(reactor: Reactor) -> None:
    done = crawl(reactor, Noting, ["http://127.0.0.1:9/a"], settings={"RETRY_TIMES": 0})

    assert len(done.spider.errors) == 1
    assert done.counted["denied/RobotsGivenUp"] == 1
    assert "given up, since its robots.txt is unreachable (CONNECTION_REFUSED)" in str(
        done.spider.errors[0][1]
    )


def test_a_site_that_is_down_does_not_keep_the_crawl_open_for_each_of_its_requests(reactor: Reactor) -> None:
    with serving() as site:
        site.robots_status = 503
        urls = [site.url(f"/{number}") for number in range(30)]
        options = {
            "fetching": LOOPBACK,
            "pacing": polite.PacingPolicy(min_delay=DELAY_S, backoff=0.2, max_backoff=0.4),
            "robots": polite.RobotsPolicy(retry_min=0.3, retry_max=0.5),
        }
        done = crawl(reactor, Noting, urls, settings={"RETRY_TIMES": 1, "POLITE": options})

    assert site.paths == []
    assert len(site.hits) <= 4
    assert done.counted["denied/RobotsGivenUp"] == 30
    assert len({str(error) for _, error in done.spider.errors}) == 30


def test_a_host_whose_budget_is_spent_gets_no_more_requests_and_says_why(
    reactor: Reactor, site: Site
) -> None:
    pacing = polite.PacingPolicy(min_delay=DELAY_S, max_pages=2)
    urls = [f"{origin}/{number}" for number in range(4) for origin in site.urls]
    done = crawl(reactor, Noting, urls, settings={"POLITE": {"fetching": LOOPBACK, "pacing": pacing}})

    judge(site)
    assert len(done.spider.pages) == 2 * len(site.urls)
    causes = [error.__cause__ for _, error in done.spider.errors]
    assert {(type(cause), cause.option) for cause in causes} == {(polite.OriginDeclined, "max_pages")}
    assert done.counted["denied/OriginDeclined"] == len(urls) - len(done.spider.pages)


def test_a_url_that_polite_cannot_interpret_gets_an_errback(reactor: Reactor) -> None:
    done = crawl(reactor, Noting, ["http://1.2.3.999/"])

    assert [type(error.__cause__) for _, error in done.spider.errors] == [polite.InvalidURL]
    assert done.counted == {"denied": 1, "denied/InvalidURL": 1}


class Meddling:
    """Another middleware, which answers, drops and replaces requests before they reach polite's."""

    def process_request(self, request):
        if request.url.endswith("answered"):
            return scrapy.http.TextResponse(request.url, body=b"mine", encoding="utf-8")
        if request.url.endswith("dropped"):
            raise IgnoreRequest("not mine")
        if request.url.endswith("replaced"):
            return request.replace(url=request.url.replace("replaced", "other"), dont_filter=True)
        return None


def test_turns_that_other_middlewares_make_needless_are_given_back(reactor: Reactor, site: Site) -> None:
    urls = [
        site.url(f"/{number}-{what}") for number in range(3) for what in ("answered", "dropped", "replaced")
    ]

    done = crawl(reactor, Noting, urls, settings={"DOWNLOADER_MIDDLEWARES": {Meddling: 500}})

    judge(site)
    assert sorted(site.paths) == [f"/{number}-other" for number in range(3)]
    assert len(done.spider.pages) == 6
    assert len(done.spider.errors) == 3
    assert (done.counted["granted"], done.counted["unsent"]) == (3, 9)


def test_a_site_whose_robots_txt_is_there_again_is_readmitted(reactor: Reactor) -> None:
    class Patient(Noting):
        async def failed(self, failure):
            super().failed(failure)
            site.robots_status = 200
            await asyncio.sleep(0.6)
            yield scrapy.Request(site.url("/again"), self.parse, errback=super().failed)

    with serving() as site:
        site.robots_status = 503
        options = {
            "fetching": LOOPBACK,
            "pacing": polite.PacingPolicy(min_delay=DELAY_S, backoff=0.2, max_backoff=0.4),
            "robots": polite.RobotsPolicy(retry_min=0.3, retry_max=0.5),
        }
        done = crawl(reactor, Patient, [site.url("/a")], settings={"RETRY_TIMES": 0, "POLITE": options})

    assert done.counted["denied/RobotsGivenUp"] == 1
    assert done.spider.pages == [site.url("/again")]
