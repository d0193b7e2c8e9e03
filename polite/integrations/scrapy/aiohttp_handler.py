"""Scrapy's download handler without a reactor, without aiohttp's own retry, which would be a request without a turn."""

from scrapy.core.downloader.handlers._aiohttp import AiohttpDownloadHandler
from scrapy.crawler import Crawler


class PoliteAiohttpHandler(AiohttpDownloadHandler):
    """As PoliteHTTP11Handler: aiohttp, too, sends a request again if a connection that was used before is closed."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        # Private in both packages. A test notices if it changes.
        self._session._retry_connection = False  # noqa: SLF001
