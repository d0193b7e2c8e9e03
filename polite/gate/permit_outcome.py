"""What a permit knows of its response beyond an Outcome: that it began, or that it asks for a price or a licence."""

from dataclasses import dataclass

from polite.http.demand import Demand, demand
from polite.http.header_fields import Fields
from polite.pacing.outcome import Outcome


class Begun(Outcome):
    """The outcome of a response whose status is not known (yet)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Demanding(Outcome):
    """The outcome of a response that asks for a price or a licence instead of giving the page."""

    demand: Demand | None = None


def with_demand(outcome: Outcome, fields: Fields) -> Outcome:
    """Return the same outcome, with what the response asks for."""
    found = demand(outcome.status, fields)
    if found is None:
        return outcome
    return Demanding(
        outcome.status, outcome.retry_after_s, outcome.elapsed_s, outcome.failed, outcome.rate_limits, found
    )
