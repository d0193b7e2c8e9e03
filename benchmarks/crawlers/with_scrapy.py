"""The same crawl on Scrapy: one request per host at a time, an exact delay, and concurrency equal to the number of hosts."""

import sys

import scrapy
from scrapy.crawler import AsyncCrawlerProcess

from benchmarks.hosts import urls


def main(hosts: int, pages: int, delay: float, port: int) -> None:
    class Pages(scrapy.Spider):
        name = "pages"

        async def start(self):
            for url in urls(hosts, pages, port):
                yield scrapy.Request(url, dont_filter=True)

        def parse(self, response):
            pass

    process = AsyncCrawlerProcess(
        {
            "LOG_LEVEL": "CRITICAL",
            "TELNETCONSOLE_ENABLED": False,
            "COOKIES_ENABLED": False,
            "ROBOTSTXT_OBEY": True,
            "USER_AGENT": "politebench/1.0",
            "DOWNLOAD_DELAY": delay,
            "DOWNLOAD_DELAY_JITTER": 0,
            "RANDOMIZE_DOWNLOAD_DELAY": False,
            "CONCURRENT_REQUESTS": 2 * hosts,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
            "RETRY_ENABLED": False,
            "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
            "REACTOR_THREADPOOL_MAXSIZE": 20,
        }
    )
    process.crawl(Pages)
    process.start()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
