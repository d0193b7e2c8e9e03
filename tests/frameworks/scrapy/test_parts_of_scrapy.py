"""Scrapy's other parts: its cache, its media pipelines, its settings."""

import pytest
import scrapy
from scrapy.core.downloader.handlers.datauri import DataURIDownloadHandler
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler

import polite
from polite.events import Event, Granted
from polite.integrations.scrapy import PoliteMiddleware, PoliteQueue
from polite.integrations.scrapy.options import Options
from tests.frameworks.scrapy.crawls import SETTINGS, Noting, Reactor, crawl, judge, serving
from tests.integrations.site import LOOPBACK, PAGE, redirect, served_raw

heard: list[str] = []


def test_what_the_cache_has_needs_neither_turn_nor_robots_txt(reactor, tmp_path):
    cached = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    with serving() as site:
        urls = [site.url(f"/{number}") for number in range(3)]
        first = crawl(reactor, Noting, urls, settings=cached)
        judge(site)
        assert len(site.paths) == 3
        both = crawl(reactor, Noting, [*urls, site.url("/new")], settings=cached)
        judge(site)
    # The server is away, and another agent knows no rules.
    again = crawl(reactor, Noting, urls, settings={**cached, "USER_AGENT": "OtherBot/1.0"})

    assert [len(each.spider.pages) for each in (first, both, again)] == [3, 4, 3]
    assert (both.counted["granted"], again.counted) == (1, {})
    assert again.stats["httpcache/hit"] == 3


class Media(Noting):
    """Two items with files, one of them disallowed."""

    def parse(self, response):
        yield {"file_urls": [response.urljoin(path) for path in ("/f/1", "/f/2", "/private/f")]}


def test_files_of_media_pipelines_wait_for_their_turn(reactor, site, tmp_path):
    settings = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}, "FILES_STORE": str(tmp_path)}
    done = crawl(reactor, Media, [site.url("/a"), site.url("/b")], settings=settings)
    judge(site)
    assert sorted(site.paths) == ["/a", "/b", "/f/1", "/f/2"]
    assert len(list(tmp_path.glob("full/*"))) == 2
    assert done.counted["denied/Disallowed"] == 1


def applied(settings, spider=None):
    addon = {"ADDONS": {"polite.integrations.scrapy.Addon": 300}, "TWISTED_REACTOR_ENABLED": True}
    crawler = Crawler(spider or Noting, {**addon, **settings})
    crawler.addons.load_settings(crawler.settings)
    return crawler.settings


class Hasty(Noting):
    custom_settings = {"DOWNLOAD_DELAY": 2, "AUTOTHROTTLE_ENABLED": True}  # noqa: RUF012 - as Scrapy has it


@pytest.mark.parametrize(
    ("project", "spider", "expected"),
    [
        # What `scrapy startproject` writes is no reason to warn.
        (
            {"ROBOTSTXT_OBEY": True, "CONCURRENT_REQUESTS_PER_DOMAIN": 1, "DOWNLOAD_DELAY": 3},
            Noting,
            {"ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 16, "POLITE_DELAY": 3},
        ),
        ({}, Hasty, {"AUTOTHROTTLE_ENABLED": False, "POLITE_DELAY": 2}),
    ],
)
def test_the_addon_overrides_what_a_project_or_a_spider_sets(project, spider, expected, caplog):
    settings = applied(project, spider)

    assert {name: settings[name] for name in expected} == expected
    assert settings.getfloat("DOWNLOAD_DELAY") == 0
    assert settings["SCHEDULER_PRIORITY_QUEUE"] is PoliteQueue
    assert settings["DOWNLOADER_MIDDLEWARES"][PoliteMiddleware] == 990
    assert bool(caplog.records) is (spider is Hasty)
    # It is inside of all others.
    assert (
        applied({"DOWNLOADER_MIDDLEWARES": {Hasty: 2000}})["DOWNLOADER_MIDDLEWARES"][PoliteMiddleware] == 2001
    )


class OwnScheduler(scrapy.core.scheduler.BaseScheduler):
    """A scheduler with queues of its own, as scrapy-redis has."""


class OwnQueue(scrapy.pqueues.ScrapyPriorityQueue):
    """A priority queue of the project."""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"AUTOTHROTTLE_ENABLED": True}, "AutoThrottle is off: "),
        ({"DOWNLOAD_SLOTS": {"a.test": {"delay": 3}}}, "delay of a.test comes on top"),
        ({"CONCURRENT_REQUESTS_PER_IP": 2}, "CONCURRENT_REQUESTS_PER_IP is off"),
        ({"SCHEDULER": OwnScheduler}, "with queues of its own"),
        ({"SCHEDULER_PRIORITY_QUEUE": OwnQueue}, "requests wait in the middleware"),
        ({"DOWNLOAD_DELAY": 2, "POLITE": {"pacing": polite.PacingPolicy()}}, "has no effect"),
    ],
)
def test_it_says_what_of_a_project_it_changes(settings: dict[str, object], said: str, caplog):
    applied(settings)
    assert [record for record in caplog.records if said in record.getMessage()]


ALONE = {
    "ADDONS": {},
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "POLITE_DELAY": 0.1,
    "DOWNLOADER_MIDDLEWARES": {PoliteMiddleware: 990},
}


def test_the_middleware_alone_is_polite_and_warns(reactor, site, caplog):
    urls = [f"{origin}/{page}" for page in ("a", "b", "private/x") for origin in site.urls]
    hindering = {"ROBOTSTXT_OBEY": True, "DOWNLOAD_DELAY": 0.1, "AUTOTHROTTLE_ENABLED": True}

    done = crawl(reactor, Noting, urls, settings=ALONE)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("polite")]
    crawl(reactor, Noting, [site.url("/c")], settings={**ALONE, **hindering})

    assert (len(done.spider.pages), len(done.spider.errors)) == (4, 2)
    assert len(said) == 1
    assert "holds one of CONCURRENT_REQUESTS places" in said[0]
    assert all(setting in caplog.text for setting in hindering)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"POLITE": {"fetchin": LOOPBACK}}, "no option 'fetchin'; 'fetching' is one"),
        ({"POLITE": {"zzz": 1}}, "no option 'zzz'; there are robots, pacing"),
        ({"POLITE": {"agent": "Bot/1.0"}}, "the User-Agent is the setting USER_AGENT"),
        ({"POLITE": LOOPBACK}, "POLITE must be a dict of options of polite.open_gate"),
        ({"POLITE": "{"}, "POLITE must be a dict"),
        ({"USER_AGENT": None}, "USER_AGENT is empty; say who you are"),
        ({"POLITE_DELAY": -1}, "POLITE_DELAY must be >= 0"),
        ({"ADDONS": {}, "SCHEDULER_PRIORITY_QUEUE": PoliteQueue}, "needs PoliteMiddleware"),
    ],
)
def test_a_setting_that_is_a_mistake_is_an_error_before_the_crawl(reactor, settings, said):
    with pytest.raises(polite.InvalidOption, match=said):
        crawl(reactor, Noting, settings=settings)


def test_settings_that_may_be_mistakes_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    settings = {name: value for name, value in SETTINGS.items() if name != "USER_AGENT"}
    crawler = Crawler(Noting, {**settings, "POLITE_DELY": 3, "TWISTED_REACTOR_ENABLED": True})
    crawler.addons.load_settings(crawler.settings)
    Options.of(crawler)
    assert "POLITE_DELY is no setting of polite's" in caplog.text
    assert "USER_AGENT is not set, so robots.txt is obeyed for 'Scrapy/" in caplog.text


@pytest.mark.parametrize(
    ("handler", "warned"), [(HTTP11DownloadHandler, False), (DataURIDownloadHandler, True)]
)
def test_a_handler_that_may_send_more_is_warned_of(reactor, site, handler: type, warned: bool, caplog):
    handler = type("Own", (handler,), {})
    done = crawl(reactor, Noting, ["data:,a"], settings={"DOWNLOAD_HANDLERS": {"https": handler}})
    https = done.crawler.engine.downloader.handlers._get_handler("https")
    assert warned or not https._pool.retryAutomatically
    assert ("What it requests by itself takes no turn" in caplog.text) == warned


def test_what_is_sent_is_what_was_decided(reactor: Reactor) -> None:
    paths = ["/]a", "/%x", "/a?", "/a;", "//b", "/c/../d", "/e/%2e%2e/f", "/g/./?h=%7e", "/é#i"]
    granted: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, Granted):
            granted.append(event.url)

    with served_raw() as site:
        site.respond = lambda target: (
            redirect(site.url + paths[int(target[4:])]) if target.startswith("/hop") else PAGE
        )
        urls = [f"{site.url}{path}" for path in (*paths, *(f"/hop{n}" for n in range(len(paths))))]
        options = {"fetching": LOOPBACK, "pacing": polite.PacingPolicy(min_delay=0.0), "listener": note}
        requests = [scrapy.Request(url, dont_filter=True) for url in urls]
        crawl(reactor, Noting, requests, settings={"POLITE": options, "DOWNLOAD_DELAY": 0})

    assert len(site.targets) >= 2.5 * len(paths)
    assert sorted(granted) == sorted(site.url + target for target in site.targets)


def test_the_listener_of_the_options_hears_events_and_robots_txt_may_have_another_name(reactor, site):
    heard.clear()
    options = {"fetching": LOOPBACK, "listener": f"{__name__}.listen"}
    settings = {"POLITE": options, "ROBOTSTXT_USER_AGENT": "OtherBot/2.0"}
    done = crawl(reactor, Noting, [site.url("/a")], settings=settings)
    judge(site)
    assert {"RobotsFetched", "Granted", "Left"} <= set(heard)
    assert done.gate.agent.named == ("otherbot",)


def listen(event: object) -> None:
    heard.append(type(event).__name__)
