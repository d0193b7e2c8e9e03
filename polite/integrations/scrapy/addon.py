"""Addon: sets what a polite crawl needs, and says what it changed."""

import logging
from typing import Any, Self

from scrapy.core.scheduler import Scheduler
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, ScrapyPriorityQueue
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object

from polite.integrations.scrapy.options import gate_options
from polite.integrations.scrapy.turns import PoliteMiddleware, PoliteQueue

log: logging.Logger = logging.getLogger(__name__)

_INNERMOST = 990


class Addon:
    """Makes a Scrapy crawl polite.

    Example:
        ADDONS = {"polite.integrations.scrapy.Addon": 300}
        USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"

    Each request, redirect hop, retry and media file is checked, and waits for its turn in the scheduler, where it holds no place of
    CONCURRENT_REQUESTS. Spiders stay as they are. Settings of polite:

        POLITE_DELAY: Shortest delay of a host in seconds. DOWNLOAD_DELAY by default, or 1.
        POLITE: A dict of options of `open_gate`, such as {"fetching": polite.FetchPolicy(allow_private=True)}.

    Crawlers of one process with the same USER_AGENT and POLITE share one gate.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the add-on of a crawler, as Scrapy does."""
        return cls(crawler)

    def update_settings(self, settings: BaseSettings) -> None:
        """Set the priority queue, the middleware, and what they need of Scrapy's settings."""
        # `scrapy startproject` writes True: that is no reason to warn.
        _force(settings, "ROBOTSTXT_OBEY", value=False)
        if settings.getbool("AUTOTHROTTLE_ENABLED"):
            log.warning(
                "AutoThrottle is off: it sets delays of the downloader, where a request would hold its host's turn. "
                "polite backs off after a 429 or 503, and POLITE = {'pacing': PacingPolicy(latency_factor=1)} follows the "
                "latency of a host"
            )
        _force(settings, "AUTOTHROTTLE_ENABLED", value=False)
        # The delay of the downloader becomes the gate's: it would run while a request has its turn.
        spider = self._crawler.spider or self._crawler.spidercls
        delay = float(getattr(spider, "download_delay", None) or settings.getfloat("DOWNLOAD_DELAY"))
        if settings.get("POLITE_DELAY") is None and delay > 0:
            if "pacing" in gate_options(settings):
                log.warning("DOWNLOAD_DELAY=%g has no effect, since POLITE has a pacing policy", delay)
            settings.set("POLITE_DELAY", delay, "addon")
        _force(settings, "DOWNLOAD_DELAY", value=0)
        # A slot of the downloader may have several origins: it must not hold requests back that have their turn.
        delayed = [name for name, slot in settings.getdict("DOWNLOAD_SLOTS").items() if slot.get("delay")]
        if delayed:
            log.warning(
                "DOWNLOAD_SLOTS: the delay of %s comes on top of polite's, while a request holds its host's turn; use "
                "PacingPolicy.override(url, min_delay=...)",
                ", ".join(delayed),
            )
        places = settings.getint("CONCURRENT_REQUESTS")
        if settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") < places:
            _force(settings, "CONCURRENT_REQUESTS_PER_DOMAIN", value=places)
        # `get` warns that it is deprecated.
        if settings["CONCURRENT_REQUESTS_PER_IP"]:
            log.warning("CONCURRENT_REQUESTS_PER_IP is off: polite paces addresses, see Scopes(address=...)")
            _force(settings, "CONCURRENT_REQUESTS_PER_IP", value=0)
        # Inside all other middlewares.
        orders = settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
        others = [order for name, order in orders.items() if load_object(name) is not PoliteMiddleware]
        innermost = max([_INNERMOST, *(order + 1 for order in others)])
        settings.set_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", PoliteMiddleware, innermost)
        _set_queue(settings)


def _set_queue(settings: BaseSettings) -> None:
    """Set the priority queue, unless the crawler has a scheduler or a queue of its own."""
    scheduler = load_object(settings["SCHEDULER"])
    queue = load_object(settings["SCHEDULER_PRIORITY_QUEUE"])
    # Its metaclass takes whatever has the same methods for a subclass.
    if Scheduler not in scheduler.__mro__:
        log.warning("SCHEDULER is %s, with queues of its own: requests wait in the middleware", scheduler)
    elif issubclass(queue, PoliteQueue):
        _force(settings, "SCHEDULER_PRIORITY_QUEUE", value=queue)
    elif queue in {DownloaderAwarePriorityQueue, ScrapyPriorityQueue}:
        _force(settings, "SCHEDULER_PRIORITY_QUEUE", value=PoliteQueue)
    else:
        log.warning("SCHEDULER_PRIORITY_QUEUE is %s: requests wait in the middleware", queue)


def _force(settings: BaseSettings, name: str, *, value: Any) -> None:
    """Set a value that neither the project nor the spider may keep."""
    priority = max(settings.getpriority(name) or 0, SETTINGS_PRIORITIES["spider"])
    settings.set(name, value, priority)
