"""Scrapy: ROBOTSTXT_OBEY, DOWNLOAD_DELAY 1 without jitter, one request at a time per host, AutoThrottle; links within the hosts."""

import sys
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.linkextractors import LinkExtractor


class Pages(scrapy.Spider):
    name = "pages"
    start_urls = sys.argv[1:]
    allowed_domains = sorted({str(urlsplit(url).hostname) for url in sys.argv[1:]})

    def parse(self, response):
        if isinstance(response, scrapy.http.TextResponse):
            yield from response.follow_all(LinkExtractor(deny_extensions=[]).extract_links(response))


process = AsyncCrawlerProcess(
    {
        "USER_AGENT": "JudgedBot/1.0 (+https://example.com/bot)",
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": 1,
        "DOWNLOAD_DELAY_JITTER": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "CONCURRENT_REQUESTS": 40,
        "AUTOTHROTTLE_ENABLED": True,
        "AUTOTHROTTLE_START_DELAY": 1,
        "LOG_LEVEL": "CRITICAL",
        "TELNETCONSOLE_ENABLED": False,
    }
)
process.crawl(Pages)
process.start()
