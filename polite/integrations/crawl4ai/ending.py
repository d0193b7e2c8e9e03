"""CrawlEnded: the crawl of a URL is over, and must not be tried again."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from crawl4ai import CrawlResult

from polite.errors import InvalidOption, PoliteError
from polite.robots.errors import Disallowed

# What crawl4ai gives for a page that its own check of robots.txt refuses.
_REFUSED = 403
_REFUSED_HEADERS = {"X-Robots-Status": "Blocked by robots.txt"}

_in_polite_crawler: ContextVar[bool] = ContextVar("in_polite_crawler", default=False)


class CrawlEnded(BaseException):
    """The crawl of a URL is over, and must not be tried again.

    Not an Exception: after one, `AsyncWebCrawler.arun` tries again, with the next proxy, and with `fallback_fetch_function`, and
    it writes an empty page into the cache. `PoliteCrawler.arun` always catches it.
    """

    def __init__(
        self, message: str, *, status: int | None, headers: Mapping[str, str], url: str | None = None
    ) -> None:
        super().__init__(message)
        self._status = status
        self._headers = dict(headers)
        self._url = url

    @classmethod
    def by(cls, error: PoliteError) -> "CrawlEnded":
        """Return the ending for an error of the gate. Nothing was sent."""
        if isinstance(error, Disallowed):
            return cls(
                f"Access denied by robots.txt: {error}",
                status=_REFUSED,
                headers=_REFUSED_HEADERS,
                url=error.url,
            )
        return cls(str(error), status=None, headers={}, url=error.url)

    def result(self, url: str) -> CrawlResult:
        """Return the result for the URL that was to be crawled."""
        return CrawlResult(
            url=url,
            html="",
            success=False,
            status_code=self._status,
            error_message=str(self),
            response_headers=self._headers,
            redirected_url=self._url or url,
        )


def ending_by(error: BaseException | None) -> CrawlEnded | None:
    """Return the ending for an error that came from the gate, which crawl4ai may have wrapped. None for another."""
    while error is not None:
        if isinstance(error, PoliteError):
            return CrawlEnded.by(error)
        error = error.__cause__ or error.__context__
    return None


@contextmanager
def catching_endings() -> Iterator[None]:
    """While this is open, the task's strategy may raise CrawlEnded."""
    token = _in_polite_crawler.set(True)
    try:
        yield
    finally:
        _in_polite_crawler.reset(token)


def require_polite_crawler(strategy: str) -> None:
    """Raise InvalidOption unless the task crawls with `PoliteCrawler`."""
    if not _in_polite_crawler.get():
        raise InvalidOption(
            f"{strategy} sends requests only for PoliteCrawler: use PoliteCrawler({strategy}(gate))"
        )
