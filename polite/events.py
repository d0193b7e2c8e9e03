"""What happens, as frozen values for a listener. URLs carry no credentials; times are seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RobotsFetched:
    """An origin was asked for its robots.txt; `outcome` is "found", "unavailable" or "unreachable".

    `probes`: other pages it was asked for, to infer whether robots.txt is missing (H7).
    """

    origin: str
    outcome: str
    reason: str
    status: int | None
    hops: int
    elapsed_s: float
    next_in_s: float
    probes: int = 0


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


@dataclass(frozen=True, slots=True)
class Waited:
    """A permit waits from now: `scope` holds it for `for_s` at least, because of what `because` says (None: turns under way)."""

    url: str
    scope: str
    for_s: float
    because: str | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A URL's turn came and was given back, nothing asked for; `because` says why."""

    url: str
    because: str


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """A permit was held for `held_s`, longer than `PacingPolicy.max_hold`: its turn was taken back, and others may go."""

    url: str
    held_s: float


@dataclass(frozen=True, slots=True)
class Opened:
    """An origin failed `failures` times in a row: its circuit is open for `for_s`, and then one request goes alone."""

    origin: str
    failures: int
    for_s: float
    because: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The one request was answered, with `status`: the origin's circuit is closed, and requests go as before."""

    origin: str
    status: int


@dataclass(frozen=True, slots=True)
class PutOff:
    """A frontier asks an origin again in `for_s`: its robots.txt could not be had; `tasks` of it wait meanwhile."""

    origin: str
    tasks: int
    for_s: float
    because: str


@dataclass(frozen=True, slots=True)
class Retried:
    """A task of a frontier comes back in `after_s`; it was given out `tries` times."""

    url: str
    tries: int
    after_s: float


@dataclass(frozen=True, slots=True)
class Dropped:
    """A frontier gives a task up, after it was given out `tries` times; `because` says why."""

    url: str
    because: str
    tries: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """A frontier's file holds a damaged row: it stays in the file, and its task is not given out. `row`: the task's number."""

    file: str
    row: int


Event = (
    RobotsFetched
    | Refused
    | Granted
    | Waited
    | Skipped
    | Reclaimed
    | Slowed
    | Opened
    | Closed
    | PutOff
    | Retried
    | Dropped
    | SetAside
)
