"""What crawl4ai sends past polite is warned of, once."""

import warnings
from typing import Any

import pytest
from crawl4ai import AsyncWebCrawler, BFSDeepCrawlStrategy, FilterChain, LinkPreviewConfig, SEOFilter

from tests.frameworks.crawl4ai.crawls import config, crawling


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ({"link_preview_config": LinkPreviewConfig(include_internal=True)}, "link_preview_config"),
        ({"check_cache_freshness": True}, "check_cache_freshness"),
        ({"fetch_ssl_certificate": True}, "fetch_ssl_certificate"),
        (
            {
                "deep_crawl_strategy": BFSDeepCrawlStrategy(
                    max_depth=1, filter_chain=FilterChain([SEOFilter(keywords=["x"])])
                )
            },
            "SEOFilter",
        ),
    ],
)
@pytest.mark.parametrize("many", [False, True])
async def test_a_config_whose_requests_are_not_paced_is_warned_of_once(hosts, options, warning, many):
    async with crawling() as (crawler, _):
        call: Any = crawler.arun_many if many else crawler.arun
        url = hosts.url("/a")
        with pytest.warns(UserWarning, match=warning) as noticed:
            await call([url] if many else url, config(**options))
        with warnings.catch_warnings(record=True) as again:
            warnings.simplefilter("always")
            await call([url] if many else url, config(**options))

    assert noticed[0].filename == __file__
    assert not [each for each in again if warning in str(each.message)]
    hosts.judge()


@pytest.mark.parametrize("method", ["aseed_urls", "amap_domain"])
async def test_discovery_past_the_gate_is_warned_of(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    async def discovered(*_: object, **__: object) -> list[str]:
        return ["https://a.test/"]

    monkeypatch.setattr(AsyncWebCrawler, method, discovered)
    async with crawling() as (crawler, _):
        with pytest.warns(UserWarning, match=rf"{method}.*gate\.sitemaps"):
            assert await getattr(crawler, method)("a.test") == ["https://a.test/"]
