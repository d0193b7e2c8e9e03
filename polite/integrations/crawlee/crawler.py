"""polite_crawler: a crawler of crawlee with the parts that make it polite."""

from typing import Any, TypeVar

from crawlee.crawlers import BasicCrawler

from polite.errors import InvalidOption
from polite.gate.gate import Gate
from polite.integrations.crawlee.browser import browser_options, guard_pages
from polite.integrations.crawlee.http_client import PoliteHttpClient
from polite.integrations.crawlee.request_manager import PoliteRequestManager, Skipped

C = TypeVar("C", bound=BasicCrawler[Any, Any])


def polite_crawler(kind: type[C], gate: Gate, **options: Any) -> C:  # noqa: ANN401 - those of any crawler
    """Return a crawler whose every request is checked by robots.txt, waits for its turn, and is reported.

    Example:
        async with polite.open_gate("ExampleBot/1.0 (+https://example.com/bot)") as gate:
            crawler = polite_crawler(ParselCrawler, gate, max_requests_per_crawl=100)
            ...  # handlers and hooks as ever
            await crawler.run(["https://example.com/"])

    What robots.txt disallows is skipped, and reaches `on_skipped_request`. Retries, sessions, proxies, statistics and storages are
    crawlee's. Delays are the gate's: several crawlers may share it.

    Args:
        kind: HttpCrawler, BeautifulSoupCrawler, ParselCrawler, PlaywrightCrawler, or a class of yours that extends one of these.
        gate: A gate of `polite.open_gate`. The crawler does not close it.
        options: The options of `kind`. `request_manager` is the queue, and `http_client` a client that follows no redirects, as
            `PoliteHttpClient` says; they are wrapped. `respect_robots_txt_file` has no effect: the gate obeys robots.txt.

    Raises:
        InvalidOption: The crawler or an option is of the wrong kind.
        InvalidUserAgent: The browser has another User-Agent than the gate.
    """
    _require_crawlers(kind)
    manager = _manager(gate, options)
    client = options.pop("http_client", None)
    if not isinstance(client, PoliteHttpClient):
        client = PoliteHttpClient(manager, client)
    elif client.manager is not manager:
        raise InvalidOption("the PoliteHttpClient needs the same PoliteRequestManager as the crawler")
    options.pop("respect_robots_txt_file", None)
    options |= browser_options(kind, gate, options)
    crawler = _connected(kind, manager)(request_manager=manager, http_client=client, **options)
    guard_pages(crawler, manager)
    return crawler


def _require_crawlers(kind: object) -> None:
    if not isinstance(kind, type) or not issubclass(kind, BasicCrawler):
        raise InvalidOption(f"polite_crawler needs a class of crawlers, such as ParselCrawler, got {kind!r}")


def _manager(gate: Gate, options: dict[str, Any]) -> PoliteRequestManager:
    queue = options.pop("request_manager", None)
    if isinstance(queue, PoliteRequestManager):
        if queue.gate is not gate:
            raise InvalidOption("the PoliteRequestManager has another gate than the crawler")
        return queue
    return PoliteRequestManager(
        gate,
        queue,
        storage_client=options.get("storage_client"),
        configuration=options.get("configuration"),
    )


def _connected(kind: type[C], manager: PoliteRequestManager) -> type[C]:
    """Return the class with two public methods that tell the manager: what is skipped has a callback, and the crawl is stopped."""

    class Polite(kind):  # type: ignore[valid-type, misc]
        def on_skipped_request(self, callback: Skipped) -> Skipped:
            manager.on_skipped_request(callback)
            super().on_skipped_request(callback)
            return callback

        def stop(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as the crawler has it
            super().stop(*args, **options)
            manager.stop()

    Polite.__name__, Polite.__qualname__, Polite.__module__ = (
        kind.__name__,
        kind.__qualname__,
        kind.__module__,
    )
    return Polite
