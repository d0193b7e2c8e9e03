"""A thousand requests of all kinds: each ends in a callback, in an errback, or in a stat."""

from collections import Counter, defaultdict

import scrapy
from scrapy.exceptions import IgnoreRequest

import polite
from tests.frameworks.scrapy.crawls import Noting, Reactor, crawl, judge, serving
from tests.integrations.site import LOOPBACK

HOSTS = 50
DELAY_S = 0.05
# What each host is asked for.
PATHS = (
    *(f"/page/{number}" for number in range(8)),
    *(f"/private/{number}" for number in range(3)),
    "/hop?to=/end",
    "/hop/2?to=/private/x",
    "/broken",
    "/down",
    "/method?post",
    "/answered",
    "/dropped",
    "/page/0",
    "/a/../private/3",
)
PACING = polite.PacingPolicy(min_delay=DELAY_S, backoff=0.1, max_backoff=0.1, circuit_failures=0)


class Meddling:
    def process_request(self, request):
        if request.url.endswith("/answered"):
            return scrapy.http.TextResponse(request.url, body=b"mine", encoding="utf-8")
        if request.url.endswith("/dropped"):
            raise IgnoreRequest("not mine")
        return None


class Mixed(Noting):
    def __init__(self, **options):
        super().__init__(**options)
        self.fates = defaultdict(list)

    async def start(self):
        for number, path in enumerate(PATHS):
            for host, origin in enumerate(self.urls):
                method = "POST" if path.endswith("?post") else "GET"
                yield scrapy.Request(
                    origin + path,
                    self.parse,
                    method=method,
                    body=b"x" if method == "POST" else b"",
                    errback=None if path == "/private/2" else self.failed,
                    priority=number % 3,
                    meta={"number": (host, path, number)},
                )

    def parse(self, response):
        self.fates[response.meta["number"]].append("callback")

    def failed(self, failure):
        self.fates[failure.request.meta["number"]].append("errback")


def test_each_of_a_thousand_mixed_requests_has_one_fate(reactor: Reactor) -> None:
    with serving(HOSTS) as site:
        settings = {
            "POLITE": {"fetching": LOOPBACK, "pacing": PACING},
            "DOWNLOADER_MIDDLEWARES": {Meddling: 400},
            "RETRY_TIMES": 1,
            "LOG_LEVEL": "ERROR",
        }
        done = crawl(reactor, Mixed, urls=site.urls, settings=settings)

        judge(site, DELAY_S)

    fates = done.spider.fates
    assert HOSTS * len(PATHS) == 1_000
    assert all(len(outcomes) == 1 for outcomes in fates.values())
    by_path: dict[str, Counter[str]] = defaultdict(Counter)
    for (_, path, _), (outcome,) in fates.items():
        by_path[path][outcome] += 1
    errbacks = {path for path in by_path if "errback" in by_path[path]}
    assert errbacks == {
        "/private/0",
        "/private/1",
        "/hop/2?to=/private/x",
        "/broken",
        "/dropped",
        "/a/../private/3",
    }
    assert all(sum(counts.values()) == HOSTS for counts in by_path.values())
    # Without an errback, it is in the stats only. The second /page/0 is a duplicate.
    assert len(fates) == 1_000 - 2 * HOSTS
    assert done.stats["dupefilter/filtered"] == HOSTS
    counted = done.counted
    assert counted["denied"] == counted["denied/Disallowed"] == 5 * HOSTS
    assert counted["unsent"] == 2 * HOSTS
    assert counted["robots_fetched"] == HOSTS
    assert counted["granted"] == len(site.paths)
    assert "left_in_queue" not in counted
    assert done.stats["scheduler/enqueued"] == done.stats["scheduler/dequeued"]
