"""RecrawlPolicy: when a page is worth fetching again."""

from dataclasses import dataclass

from polite.options import number

_HOUR_S, _DAY_S = 3_600.0, 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecrawlPolicy:
    """When a page is worth fetching again (`Permit.due`). Durations are in seconds of the wall clock.

    >>> RecrawlPolicy(min_interval=600.0).min_interval
    600.0

    Attributes:
        min_interval: The shortest time from a response to the next fetch, whatever the response says.
        max_interval: The longest one.
        default_interval: The interval for a response that says nothing: no max-age, no Expires, no Last-Modified. Kept within the
            limits, too.
        modified_share: The interval for a response with Last-Modified only, as a share of its age: RFC 9111, 4.2.2 names a tenth. 0
            ignores Last-Modified.

    Raises:
        InvalidOption: A value is out of range.
    """

    min_interval: float = _HOUR_S
    max_interval: float = 30 * _DAY_S
    default_interval: float = _DAY_S
    modified_share: float = 0.1

    def __post_init__(self) -> None:
        number("RecrawlPolicy: min_interval", self.min_interval)
        number("RecrawlPolicy: max_interval", self.max_interval, least=self.min_interval)
        number("RecrawlPolicy: default_interval", self.default_interval)
        number("RecrawlPolicy: modified_share", self.modified_share, most=1.0)
