"""skipping: a page is skipped if it, or a redirect hop of it, may not be fetched."""

from collections.abc import Iterator
from contextlib import contextmanager

from crawlee.errors import ContextPipelineInterruptedError

from polite.errors import OriginDeclined
from polite.integrations.crawlee.request_manager import PoliteRequestManager
from polite.robots.errors import Disallowed, RobotsUnreachable


@contextmanager
def skipping(manager: PoliteRequestManager, url: str) -> Iterator[None]:
    """Have crawlee skip a page whose request is refused in this block. Errors that may pass are raised: crawlee tries again.

    Args:
        manager: Tells `on_skipped_request`.
        url: The page's URL.

    Raises:
        ContextPipelineInterruptedError: robots.txt disallows the page or a hop, or the pacing policy permits no more requests.
    """
    try:
        yield
    except RobotsUnreachable:
        raise
    except (Disallowed, OriginDeclined) as refusal:
        because = str(refusal.decision) if isinstance(refusal, Disallowed) else refusal.because
        manager.skip(refusal.url or url, because)
        raise ContextPipelineInterruptedError(f"Skipping {url}: {refusal}") from refusal
