"""Scrapy: an add-on whose every request is checked and waits for its turn, outside of CONCURRENT_REQUESTS.

    ADDONS = {"polite.integrations.scrapy.Addon": 300}

Theory of operation. Scrapy's scheduler keeps its duplicate filter, its priorities, and its queues on disk or in memory.
`PoliteQueue` stands between them and the engine: for each origin it holds one request, the head, and puts it into a Frontier. A
head whose turn has come goes to the engine when that asks for a request. `PoliteMiddleware` is the innermost downloader
middleware: it enters the permit just before the request is sent, and waits at the gate itself for requests without one, such as
those of media pipelines. `CrawlTurns` is what they share for one crawler (`turns`). `Options` are what its settings say, and
`shared_gate` is the one gate of all crawlers of the event loop (`options`). `EngineSlot` has the private parts of Scrapy that this
needs. `Addon` sets all of it (`addon`).

Whatever fails, nothing is sent without a permit: a request that is refused gets IgnoreRequest, as from Scrapy's own robots.txt
middleware, and its errback is called.
"""

from polite.integrations.hop import needing

with needing("Scrapy", "scrapy"):
    import scrapy as _  # noqa: F401

from polite.integrations.scrapy.addon import Addon
from polite.integrations.scrapy.turns import PoliteMiddleware, PoliteQueue

__all__ = ["Addon", "PoliteMiddleware", "PoliteQueue"]
