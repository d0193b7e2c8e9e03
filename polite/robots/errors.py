"""Disallowed and RobotsUnreachable: exceptions that carry a decision."""

from typing import Any

from polite.errors import PoliteError
from polite.robots.decision import Decision


class Disallowed(PoliteError):
    """robots.txt disallows the URL. Raised by `Gate.permit` instead of giving a permit.

        >>> from polite import parse
        >>> decision = parse("User-agent: *\\nDisallow: /").decide("ExampleBot", "https://example.com/a")
        >>> print(Disallowed(decision, url="https://example.com/a"))
        https://example.com/a: disallowed by Disallow: / (line 2)

    Attributes:
        decision: which rule disallows it, or why without a rule.
        url: the URL, without credentials.
    """

    url: str

    def __init__(self, decision: Decision, *, url: str) -> None:
        super().__init__("", url=url)
        self.args: tuple[Any, ...] = (decision,)
        self.decision = decision

    def __str__(self) -> str:
        # Formatted on demand: a crawl refuses millions of URLs, and some dialects try many rules for the text.
        return f"{self.url}: {self.decision}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The default calls the class with `args` alone. A pool of processes breaks if a worker's error cannot be read.
        return _without_init, (type(self), self.decision), vars(self)


def _without_init(kind: type[Disallowed], decision: Decision) -> Disallowed:
    return kind.__new__(kind, decision)


class RobotsUnreachable(Disallowed):
    """robots.txt could not be fetched, so every URL is disallowed for now (RFC 9309, 2.3.1.4).

        >>> from polite import Reason
        >>> from polite.robots.rules import RuleSet
        >>> decision = RuleSet.deny_all(Reason.UNREACHABLE).decide("/a")
        >>> RobotsUnreachable(decision, url="https://example.com/a", retry_after_s=5.0).retry_after_s
        5.0

    Attributes:
        retry_after_s: seconds until robots.txt may be fetched again. The gate fetches it at the next request after that.
    """

    def __init__(self, decision: Decision, *, url: str, retry_after_s: float) -> None:
        super().__init__(decision, url=url)
        self.retry_after_s = retry_after_s
