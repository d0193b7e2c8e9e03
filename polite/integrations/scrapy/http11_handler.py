"""Scrapy's ordinary download handler, without Twisted's own retry, which would be a request without a turn."""

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler


class PoliteHTTP11Handler(HTTP11DownloadHandler):
    """If a server closes a connection that was used before, Twisted sends a GET again at once. Here it is an error, which
    Scrapy's RetryMiddleware retries in its turn.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        # Private, since the handler offers no pool. A test notices if it changes.
        self._pool.retryAutomatically = False
