"""What happens, as frozen values for a listener. URLs carry no credentials; times are seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RobotsFetched:
    """An origin was asked for its robots.txt; `outcome` is "found", "unavailable" or "unreachable"."""

    origin: str
    outcome: str
    reason: str
    status: int | None
    hops: int
    elapsed_s: float
    next_in_s: float


@dataclass(frozen=True, slots=True)
class Refused:
    """A URL may not be fetched; `line` is the deciding rule's, where a rule decided."""

    url: str
    reason: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Granted:
    """A URL's turn has come, `waited_s` after it was asked for."""

    url: str
    waited_s: float


@dataclass(frozen=True, slots=True)
class Slowed:
    """An origin refused (429, 503): it rests for `pause_s`, because of what `because` says."""

    origin: str
    status: int
    pause_s: float
    because: str


Event = RobotsFetched | Refused | Granted | Slowed
