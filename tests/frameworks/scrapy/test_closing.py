"""The end of a crawl: spiders that close while requests wait, Ctrl-C, processes of each kind, jobs that go on; and the page."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scrapy.exceptions import CloseSpider

from tests.frameworks.scrapy.crawls import Noting, crawl, crawl_all, judge
from tests.frameworks.scrapy.test_parts_of_scrapy import ALONE

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("settings", [{}, ALONE], ids=["addon", "middleware alone"])
def test_a_spider_closes_though_requests_wait_for_a_minute(reactor, site, settings: dict[str, object]):
    site.refusals = 1

    class Closing(Noting):
        def parse(self, response):
            if response.status == 429:
                raise CloseSpider("refused")

    urls = [site.url(path) for path in ("/refuse", "/a", "/b")]
    started = time.monotonic()
    done = crawl(reactor, Closing, urls, settings={**settings, "RETRY_ENABLED": False})

    assert time.monotonic() - started < 20
    assert (site.paths, done.stats["finish_reason"]) == (["/refuse"], "refused")
    assert done.counted.get("left_in_queue", 0) + len(done.spider.errors) == 2


PROGRAM = """
import json, sys, scrapy
import polite
from scrapy.crawler import {process}

class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for url in {urls!r}:
            yield scrapy.Request(url)

    def parse(self, response):
        print("page", response.url, flush=True)

process = {process}({{
    "ADDONS": {{"polite.integrations.scrapy.Addon": 300}},
    "USER_AGENT": "TestBot/1.0 (+https://bot.test)",
    "POLITE": {{"fetching": polite.FetchPolicy(allow_private=True)}},
    "POLITE_DELAY": {delay},
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "WARNING",
    **{settings!r},
}})
crawler = process.create_crawler(Pages)
process.crawl(crawler)
process.start()
print(json.dumps({{name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, (int, str))}}))
"""


def program(urls, *, process, delay=0.1, **settings):
    source = PROGRAM.format(process=process, urls=urls, delay=delay, settings=settings)
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


KINDS = [
    ("CrawlerProcess", {}),
    ("AsyncCrawlerProcess", {}),
    ("AsyncCrawlerProcess", {"TWISTED_REACTOR_ENABLED": False}),
]


BY_NAME = {**ALONE, "DOWNLOADER_MIDDLEWARES": {"polite.integrations.scrapy.PoliteMiddleware": 990}}


@pytest.mark.parametrize(("process", "settings"), [*KINDS, ("CrawlerProcess", BY_NAME)])
def test_each_kind_of_process_crawls_leaves_nothing_and_retries_in_turns_only(site, process, settings):
    """Twisted and aiohttp send a request again at once, if its connection was used before and the server closes it."""
    urls = [site.url(path) for path in ("/a", "/broken", "/b", "/private/x")]

    out, err = program(urls, process=process, **settings, RETRY_TIMES=1).communicate(timeout=300)

    judge(site)
    stats = json.loads(out.splitlines()[-1])
    assert (stats["polite/granted"], stats["polite/denied/Disallowed"]) == (4, 1)
    assert site.paths.count("/broken") == 2
    assert "Unclosed" not in err, err
    assert "never awaited" not in err, err


@pytest.mark.parametrize(("process", "settings"), KINDS)
def test_ctrl_c_ends_a_crawl_and_its_job_goes_on(site, tmp_path, process: str, settings: dict[str, object]):
    urls = [site.url(f"/{number}") for number in range(5)]
    job = {**settings, "JOBDIR": str(tmp_path)}

    # Seconds between pages: nearly all wait when it is interrupted.
    first = program(urls, process=process, delay=4, **job)
    line = first.stdout.readline()
    first.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = first.communicate(timeout=60)
    site.hits.clear()
    rest, _ = program(urls, process=process, **job).communicate(timeout=300)

    assert time.monotonic() - started < 40
    assert first.returncode == 0, err
    assert "Unclosed" not in err, err
    assert json.loads(out.splitlines()[-1])["finish_reason"] == "shutdown"
    fetched = [
        text.split()[1] for text in [line, *out.splitlines(), *rest.splitlines()] if text.startswith("page")
    ]
    assert sorted(fetched) == sorted(urls)
    judge(site)


@pytest.mark.parametrize("fifo", [False, True])
def test_a_job_goes_on_with_all_that_was_left(reactor, site, tmp_path, fifo):
    urls = [f"{origin}/{number}" for number in range(15) for origin in site.urls]
    settings = {"JOBDIR": str(tmp_path)}
    if fifo:
        settings |= {
            "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
            "SCHEDULER_START_DISK_QUEUE": None,
        }

    first = crawl(reactor, Noting, urls, settings={**settings, "CLOSESPIDER_PAGECOUNT": 8})
    kept = json.loads((tmp_path / "requests.queue" / "active.json").read_text())
    second = crawl(reactor, Noting, urls, settings=settings)

    judge(site)
    assert first.stats["finish_reason"] == "closespider_pagecount"
    assert len(first.spider.pages) < 20
    assert set(kept) == set(site.urls)
    assert sorted(first.spider.pages + second.spider.pages) == sorted(urls)
    assert sorted(site.paths) == sorted(url.removeprefix(url.rpartition("/")[0]) for url in urls)
    assert "left_in_queue" not in first.counted


def test_a_job_that_scrapys_own_queue_began_goes_on(reactor, site, tmp_path):
    urls = [f"{origin}/{number}" for number in range(8) for origin in site.urls]
    alone = {"JOBDIR": str(tmp_path), "ADDONS": {}, "ROBOTSTXT_OBEY": False, "CLOSESPIDER_PAGECOUNT": 3}
    first = crawl(reactor, Noting, urls, settings=alone)
    site.hits.clear()
    second = crawl(reactor, Noting, urls, settings={"JOBDIR": str(tmp_path)})
    judge(site)
    assert sorted(first.spider.pages + second.spider.pages) == sorted(urls)


def test_requests_that_no_disk_can_keep_are_fetched_from_memory(reactor, site, tmp_path):
    class Unwritable(Noting):
        async def start(self):
            for number in range(4):
                yield self.request(site.url(f"/{number}"), meta={"number": lambda: None})

    done = crawl(reactor, Unwritable, settings={"JOBDIR": str(tmp_path)})

    judge(site)
    assert (len(done.spider.pages), done.stats["scheduler/unserializable"]) == (4, 4)


@pytest.mark.parametrize("in_turn", [False, True])
def test_spiders_of_one_process_keep_delays_together(reactor, site, *, in_turn):
    urls = [f"{origin}/{number}" for number in range(4) for origin in site.urls]

    class Other(Noting):
        name = "other"

    done = crawl_all(reactor, [(Noting, (urls,), {}), (Other, (urls,), {})], in_turn=in_turn)

    judge(site)
    assert len(site.paths) == 16
    assert done[0].gate is done[1].gate
    assert all(len(each.spider.pages) == 8 for each in done)


HOW_TO = (ROOT / "docs/how-to/scrapy.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", HOW_TO, re.DOTALL)
PRACTICE = "http://127.0.0.1:8031"


def run(source: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=300, cwd=ROOT, check=True
    )
    return done.stdout


def test_the_page_prints_what_it_says(site):
    (said,) = re.findall(r"```text\n(.*?)```", HOW_TO, re.DOTALL)
    said = said.replace("About this site", "page /about").replace("/private/ (", "/private (")

    printed = run("".join(BLOCKS).replace(PRACTICE, site.url("")))

    assert sorted(printed.splitlines()) == sorted(said.replace(PRACTICE, site.url("")).splitlines())
    assert site.paths == ["/about"]
