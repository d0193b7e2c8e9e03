"""Events that a listener receives, as frozen values. URLs contain no credentials; times are in seconds.

>>> def listen(event: Event) -> None:
...     if isinstance(event, BackedOff):
...         print(event.origin, event.pause_s, event.because)
>>> listen(BackedOff("https://example.com", 429, 120.0, "status 429, Retry-After 120 s"))
https://example.com 120.0 status 429, Retry-After 120 s
"""

from dataclasses import dataclass, field

from polite.task import Task


@dataclass(frozen=True, slots=True)
class RobotsFetched:
    """A fetch of robots.txt ended.

    Attributes:
        origin: The origin.
        outcome: "found", "unavailable" or "unreachable".
        reason: The reason, see Reason.
        status: The last response's status, or None.
        hops: Redirects that were followed.
        elapsed_s: The time on the network.
        next_in_s: The time until the result expires.
        probes: Other pages that were fetched to infer whether robots.txt is missing (H7).
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
    """A URL may not be fetched.

    Attributes:
        url: The URL.
        reason: The reason, see Reason.
        line: The line of the deciding rule, or None if no rule decided.
        task: The frontier's task, or None if a gate was asked.
        rule: The rule, such as "Disallow: /private/", or None.
    """

    url: str
    reason: str
    line: int | None
    task: Task | None = field(default=None, repr=False, compare=False)
    rule: str | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Granted:
    """A URL got its turn.

    Attributes:
        url: The URL.
        waited_s: The time since the turn was requested.
        origin: The URL's origin.
        task: The frontier's task, or None if a gate was asked.
    """

    url: str
    waited_s: float
    origin: str
    task: Task | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Left:
    """A permit ended: its block was left, or `leave` was called. One that `unsent` gave back is Skipped instead.

    Attributes:
        url: The URL.
        status: The status that was reported. None if there was no report, or the status was below 100.
        elapsed_s: The time from the grant until the response was reported or began, or None.
        held_s: The time from the grant to the end.
    """

    url: str
    status: int | None
    elapsed_s: float | None
    held_s: float


@dataclass(frozen=True, slots=True)
class BackedOff:
    """An origin refused a request (`PacingPolicy.backoff_statuses`: 429 and 503), so a back-off starts.

    Attributes:
        origin: The origin.
        status: The response's status.
        pause_s: The length of the back-off.
        because: What set it.
    """

    origin: str
    status: int
    pause_s: float
    because: str


@dataclass(frozen=True, slots=True)
class PaceLearned:
    """An origin that refused requests responds again. It gets them at the pace that its refusals have shown (`PacingPolicy.learn`).

    Attributes:
        origin: The origin, or a scope of several that were refused together, such as "domain example.com".
        pause_s: The seconds between two requests.
        because: How many refusals have shown it, and when a shorter time is tried.
    """

    origin: str
    pause_s: float
    because: str


@dataclass(frozen=True, slots=True)
class BudgetSpent:
    """A budget of an origin or of its scopes is spent (`PacingPolicy.max_pages`, `ScopeLimit.max_pages`): it gets no more requests.

    Attributes:
        origin: The origin.
        option: The option.
        limit: Its value for the origin.
        because: The reason.
    """

    origin: str
    option: str
    limit: float
    because: str


@dataclass(frozen=True, slots=True)
class PaymentRequired:
    """A server asks for a payment (402 with `crawler-price`). polite never pays, and does not request the page again.

    Attributes:
        url: The URL.
        origin: The URL's origin.
        price: What the server asks for, such as "USD 0.01".
    """

    url: str
    origin: str
    price: str


@dataclass(frozen=True, slots=True)
class LicenseRequired:
    """A server asks for a licence (401 or 402 with `WWW-Authenticate: License`, RSL 1.0). polite never buys one.

    Attributes:
        url: The URL.
        origin: The URL's origin.
        status: The response's status.
        challenge: The field's value, up to 500 characters.
    """

    url: str
    origin: str
    status: int
    challenge: str


@dataclass(frozen=True, slots=True)
class PermitDelayed:
    """A permit begins to wait for its turn.

    Attributes:
        url: The URL.
        scope: The scope that becomes free last.
        for_s: The least time until then.
        because: What set the delay, or None if the permit waits for open turns.
    """

    url: str
    scope: str
    for_s: float
    because: str | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A URL's turn was given back without a request.

    Attributes:
        url: The URL.
        because: The reason.
    """

    url: str
    because: str


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """A permit was held for longer than `PacingPolicy.max_hold`, so it lost its turn and other requests may go.

    Attributes:
        url: The URL.
        held_s: How long it was held.
    """

    url: str
    held_s: float


@dataclass(frozen=True, slots=True)
class CircuitOpened:
    """An origin failed repeatedly, so its circuit is open. When it ends, one request goes alone.

    Attributes:
        origin: The origin.
        failures: Failures in a row.
        for_s: How long the circuit stays open.
        because: What set it.
    """

    origin: str
    failures: int
    for_s: float
    because: str


@dataclass(frozen=True, slots=True)
class CircuitClosed:
    """The request that went alone got a response, so the origin's circuit is closed again.

    Attributes:
        origin: The origin.
        status: The response's status.
    """

    origin: str
    status: int


@dataclass(frozen=True, slots=True)
class OriginPostponed:
    """A frontier postpones an origin, since its robots.txt could not be fetched.

    Attributes:
        origin: The origin.
        tasks: Its tasks that wait.
        for_s: The time until the next attempt.
        because: The reason.
    """

    origin: str
    tasks: int
    for_s: float
    because: str


@dataclass(frozen=True, slots=True)
class Retried:
    """A task of a frontier is requeued.

    Attributes:
        url: Its URL.
        tries: How often it was given to a worker.
        after_s: The least time until it is given to a worker again.
        task: The task, as it was given to the worker.
    """

    url: str
    tries: int
    after_s: float
    task: Task | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class OperatorActed:
    """An operator's order stands from now on, or stands no more.

    Attributes:
        kind: "hold", "forbid", "drop" or "release".
        pattern: An origin, `*.domain`, or the beginning of URLs.
        by: Who gave it.
        because: Why.
        until: When it ends by itself (Unix time); None for never.
    """

    kind: str
    pattern: str
    by: str
    because: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A frontier drops a task.

    Attributes:
        url: Its URL.
        because: The reason.
        tries: How often it was given to a worker.
        task: The task, or None if there is none: `put_many` got an invalid URL.
    """

    url: str
    because: str
    tries: int
    task: Task | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class StoreAway:
    """A shared store does not respond. Until it does, no new turns are granted once the session's lease is over.

    Attributes:
        store: Its address, without credentials.
        because: The last error.
    """

    store: str
    because: str


@dataclass(frozen=True, slots=True)
class StoreBack:
    """A shared store responds again.

    Attributes:
        store: Its address, without credentials.
        away_s: How long it did not.
    """

    store: str
    away_s: float


Event = (
    RobotsFetched
    | Refused
    | Granted
    | Left
    | PermitDelayed
    | Skipped
    | Reclaimed
    | BackedOff
    | PaceLearned
    | BudgetSpent
    | PaymentRequired
    | LicenseRequired
    | CircuitOpened
    | CircuitClosed
    | OriginPostponed
    | Retried
    | Dropped
    | StoreAway
    | StoreBack
    | OperatorActed
)
"""What a listener is called with: one of these."""
