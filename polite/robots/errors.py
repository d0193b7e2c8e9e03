"""The exceptions that carry a decision: what a crawler gets instead of a permit."""

from polite.errors import PoliteError
from polite.robots.decision import Decision


class Disallowed(PoliteError):
    """robots.txt does not let the URL be fetched. `decision` says by which rule, or why without one."""

    url: str

    def __init__(self, decision: Decision, *, url: str) -> None:
        super().__init__("", url=url)
        self.args = (decision,)
        self.decision = decision

    def __str__(self) -> str:
        # Not before it is asked for: a crawl refuses millions, and some dialects look at many rules to word it.
        return f"{self.url}: {self.decision}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class RobotsUnreachable(Disallowed):
    """robots.txt could not be had, so all is disallowed for now (RFC 9309, 2.3.1.4).

    After `retry_after_s` seconds the origin may be asked again; the gate does so at the next question.
    """

    def __init__(self, decision: Decision, *, url: str, retry_after_s: float) -> None:
        super().__init__(decision, url=url)
        self.retry_after_s = retry_after_s
