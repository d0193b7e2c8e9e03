"""KnownUrls: digests of URLs that the server has, so that putting one of them again needs no call."""

from collections import OrderedDict

from polite.stores.redis.step_reply import StepReply

# About 10 MB. Links lead to the same pages again and again, and soon after.
_MOST = 100_000


class KnownUrls:
    """The URLs that this process put lately: each waits, is in flight, or is done. The one put longest ago is forgotten first.

    A server that was replaced may have lost some, so all are forgotten then.
    """

    def __init__(self) -> None:
        self._digests: OrderedDict[str, None] = OrderedDict()
        self._server: tuple[str, int, str] | None = None

    def __contains__(self, digest: str) -> bool:
        return digest in self._digests

    def add(self, digest: str) -> None:
        """Note a URL whose put was acknowledged."""
        self._digests[digest] = None
        self._digests.move_to_end(digest)
        if len(self._digests) > _MOST:
            self._digests.popitem(last=False)

    def hear(self, reply: StepReply) -> None:
        """Forget all if this reply is of another server than the last."""
        if reply.server != self._server:
            self._server = reply.server
            self._digests.clear()
