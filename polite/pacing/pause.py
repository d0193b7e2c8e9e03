"""A rest, and what is known when its length is decided."""

from dataclasses import dataclass
from typing import NamedTuple

from polite.pace import RequestedPace


@dataclass(frozen=True, slots=True)
class Pause:
    """A rest of `seconds`, and what set it.

    `strike`: the outcome was a refusal, to be counted by the scope.
    """

    seconds: float
    because: str
    strike: bool = False


class ThrottleContext(NamedTuple):
    """What a throttle may know beside the outcome: a frozen value.

    `pace`: what the file asks for, or None. `strikes`: where this outcome is a refusal, those before it that are not forgiven yet.
    `wall`: Unix time now.
    """

    pace: RequestedPace | None
    strikes: int
    wall: float
