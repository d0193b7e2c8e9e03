"""crawlee: a crawler whose every request is checked by robots.txt, waits for its turn, and is reported.

`polite_crawler` makes one from any crawler of crawlee, and needs nothing else. It gives it the two parts that crawlee lets one
replace: `PoliteRequestManager`, the queue, takes requests from crawlee's own queue into a frontier and gives them out with their
permits; `PoliteHttpClient` sends a request with the permit of its page, and follows redirects itself, a permit for each hop.

    crawlee's queue -> fetch_next_request (waits for a turn) -> crawl (sends, reports, leaves) -> mark as handled, or reclaim

A request stays "in progress" in crawlee's queue until it is handled, so that a run resumes from crawlee's storage.
"""

from polite.integrations.hop import needing

with needing("crawlee", "crawlee"):
    import crawlee as _  # noqa: F401

from polite.integrations.crawlee.crawler import PoliteHttpClient, polite_crawler
from polite.integrations.crawlee.request_manager import PoliteRequestManager

__all__ = ["PoliteHttpClient", "PoliteRequestManager", "polite_crawler"]
