"""Crawls that end early, and go on later."""

import json
from pathlib import Path

import pytest

from tests.frameworks.scrapy.crawls import Noting, Reactor, crawl, crawl_all, judge
from tests.integrations.site import Site


@pytest.mark.parametrize("fifo", [False, True])
def test_a_job_goes_on_with_all_that_was_left(reactor: Reactor, site: Site, tmp_path: Path, fifo: bool):
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


def test_a_job_that_scrapys_own_queue_began_goes_on(reactor: Reactor, site: Site, tmp_path: Path) -> None:
    urls = [f"{origin}/{number}" for number in range(8) for origin in site.urls]
    alone = {"JOBDIR": str(tmp_path), "ADDONS": {}, "ROBOTSTXT_OBEY": False, "CLOSESPIDER_PAGECOUNT": 3}

    first = crawl(reactor, Noting, urls, settings=alone)
    site.hits.clear()
    second = crawl(reactor, Noting, urls, settings={"JOBDIR": str(tmp_path)})

    judge(site)
    assert sorted(first.spider.pages + second.spider.pages) == sorted(urls)


def test_requests_that_no_disk_can_keep_are_fetched_from_memory(reactor: Reactor, site: Site, tmp_path: Path):
    class Unwritable(Noting):
        async def start(self):
            for number in range(4):
                yield self.request(site.url(f"/{number}"), meta={"number": lambda: None})

    done = crawl(reactor, Unwritable, settings={"JOBDIR": str(tmp_path)})

    judge(site)
    assert len(done.spider.pages) == 4
    assert done.stats["scheduler/unserializable"] == 4


def test_what_waits_in_memory_when_a_spider_closes_is_counted(reactor: Reactor, site: Site) -> None:
    urls = [f"{origin}/{number}" for number in range(15) for origin in site.urls]

    done = crawl(reactor, Noting, urls, settings={"CLOSESPIDER_PAGECOUNT": 8})

    judge(site)
    assert len(done.spider.pages) + done.counted["left_in_queue"] + len(done.spider.errors) == 30


@pytest.mark.parametrize("in_turn", [False, True])
def test_spiders_of_one_process_keep_delays_together(reactor: Reactor, site: Site, *, in_turn: bool) -> None:
    urls = [f"{origin}/{number}" for number in range(4) for origin in site.urls]

    class Other(Noting):
        name = "other"

    done = crawl_all(reactor, [(Noting, (urls,), {}), (Other, (urls,), {})], in_turn=in_turn)

    judge(site)
    assert len(site.paths) == 16
    assert done[0].gate is done[1].gate
    assert all(len(each.spider.pages) == 8 for each in done)


def test_of_the_delays_of_spiders_the_longest_counts(reactor: Reactor, site: Site) -> None:
    urls = [site.url(f"/{number}") for number in range(3)]

    class Slow(Noting):
        name = "slow"
        custom_settings = {"DOWNLOAD_DELAY": 0.3}  # noqa: RUF012 - as Scrapy has it

    done = crawl_all(reactor, [(Noting, (urls,), {}), (Slow, (urls,), {})])

    judge(site, 0.3)
    assert done[0].gate is done[1].gate
