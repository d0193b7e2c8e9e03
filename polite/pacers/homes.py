"""Homes: what one process of a shared crawl owns and paces alone. Their names, their holders, and what the next owner must know."""

import json
import math
from base64 import b85decode
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from polite.errors import InvalidOption
from polite.origin import Origin, Target
from polite.pacing.effective_policy import OpeningHours
from polite.pacing.scopes import HomeKind, KnownAddresses, ScopeName
from polite.ports import Clock

# Characters of a name that is stored as it is; a longer one is stored as its digest.
_MOST_CHARACTERS = 200
_DIGEST_OCTETS = 16
_UNKNOWN_ADDRESS = "unknown"
# The limit of a state in the store.
_MOST_OCTETS = 1_000


def scope_name(scope: Hashable) -> str:
    """Return the name of a scope for all processes: printable, without control characters, bounded.

    >>> scope_name(Origin.of("https://example.com/")), scope_name(ScopeName("customer", "acme")), scope_name("acme")
    ('https://example.com', 'customer acme', '= acme')

    Raises:
        InvalidOption: It is no Origin, ScopeName or str. Another value's hash differs between processes.
    """
    match scope:
        case Origin():
            return scope.text
        case ScopeName(kind, name):
            # The quoted kind has no space and no "=", so no two scopes have one name.
            return f"{quote(kind, safe='', errors='surrogatepass')} {_bounded(name)}"
        case str():
            return f"= {_bounded(scope)}"
    raise InvalidOption(
        f"PacingPolicy: scopes of a shared crawl must be Origin, ScopeName or str, got {scope!r}"
    )


class HomeNames:
    """Names homes. A process sends requests of a scope only while it holds the scope's home.

    An origin's home is its host (http and https together), its registrable domain, or what a function of its root URL returns. All
    URLs of an origin have one home, since its delay must be kept by one process. With "address", a frontier's tasks are at home at
    the host's first address; the turns of the origin need the host besides, since two processes may resolve different addresses.

    A domain is at home where domains are the homes. Opening hours and scopes that processes divide between them have no home. Any
    other scope is a home of its own.

    Args:
        kind: `PacingPolicy.home`.
        divided: Returns whether processes divide a scope between them.
        domain_of: Returns the registrable domain of a host; needed for "domain".
        addresses: Knows the addresses of hosts; needed for "address".
    """

    def __init__(
        self,
        kind: HomeKind = "host",
        *,
        divided: Callable[[Hashable], bool] = lambda _: False,
        domain_of: Callable[[str], str | None] | None = None,
        addresses: KnownAddresses | None = None,
    ) -> None:
        self._divided = divided
        self._by_domain = kind == "domain"
        self._by = kind if callable(kind) else None
        self._domain_of = domain_of if self._by_domain else None
        self._addresses = addresses if kind == "address" else None
        if self._by_domain and domain_of is None:
            raise InvalidOption('PacingPolicy: home="domain" needs the public suffix list')
        if kind == "address" and addresses is None:
            raise InvalidOption('PacingPolicy: home="address" in a shared crawl needs Scopes(address=...)')

    def of_origin(self, origin: Origin) -> str:
        """Return the home of an origin's turns. Raises InvalidOption if the user's function does not return a name."""
        if self._domain_of is not None:
            return self._domain_of(origin.host) or origin.host
        if self._by is None:
            return origin.host
        name = self._by(Target(origin, "/"))
        if type(name) is not str or not name:
            raise InvalidOption(f"PacingPolicy: home must return a name for {origin}, got {name!r}")
        # Never the name of a host, whose origins the server would look for there.
        return f"~ {_bounded(name)}"

    def of_tasks(self, origin: Origin) -> str:
        """Return the home at which a frontier's tasks of the origin wait. With "address", its host must have been resolved."""
        if self._addresses is None:
            return self.of_origin(origin)
        known = self._addresses.known(origin.host)
        return scope_name(ScopeName("address", known[0] if known else _UNKNOWN_ADDRESS))

    def of_scope(self, scope: Hashable) -> str | None:
        """Return the home of a scope, or None if any process may send its requests. Raises InvalidOption."""
        if isinstance(scope, Origin):
            return self.of_origin(scope)
        if isinstance(scope, OpeningHours) or self._divided(scope):
            return None
        if self._by_domain and isinstance(scope, ScopeName) and scope.kind == "domain":
            return scope.name
        return scope_name(scope)


def _bounded(name: str) -> str:
    if len(name) <= _MOST_CHARACTERS and name.isprintable():
        return name
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=_DIGEST_OCTETS).hexdigest()
    return f"#{digest}"


class Lease:
    """Until when a process holds its homes, by `Clock.lasting`. All homes of a session share one, so renewing them costs O(1).

    Attributes:
        until: The deadline. It lies before the server's, which began to count later.
    """

    __slots__ = ("lasting", "until")

    def __init__(self, clock: Clock) -> None:
        self.lasting: Callable[[], float] = clock.lasting
        self.until: float = -math.inf

    @property
    def good(self) -> bool:
        """Whether the deadline lies ahead."""
        return self.lasting() < self.until


@dataclass(slots=True, eq=False, repr=False)
class Home:
    """A home (a host, or whatever else one process paces alone) that this process holds, or held.

    The session's part tells what becomes of it, the frontier's what it has of its tasks.

    Attributes:
        name: The home's name, such as a host.
        fence: A number that grows with every taking of a home.
        lease: That of this process's session.
        since: When it was taken (monotonic).
        open: How many turns are open there.
        closing: It gives no new turn, and leaves when no turn is open and it is not `used`.
        wanted: Another process waits for it.
        used: The frontier has tasks of it in memory or in flight, or ends of its tasks that are not sent yet.
        spare: The frontier released it while requests of the gate needed it. It leaves when they do not.
        served: A turn was granted there: probably its rules are known.
        touched: A turn ended there since the last look.
        over: It was lost, or has left.
        free_at: Until when the frontier asked it not to be requested (monotonic).
        note: What the frontier hands over with it.
        suspects: Of how many of its next tasks the server must know before a worker gets them. Its last owner ended without a
            word, and one of them may have ended it.
        origins: The numbers of its active origins, by their text.
        in_flight: Numbers of its tasks that were given to workers.
        failures: How often in a row the rules of an origin could not be had.
    """

    name: str
    fence: int
    lease: Lease
    since: float
    note: str | None = None
    suspects: int = 0
    open: int = 0
    closing: bool = False
    wanted: bool = False
    used: bool = False
    spare: bool = False
    served: bool = False
    touched: bool = False
    over: bool = False
    free_at: float = -math.inf
    origins: dict[str, int] = field(default_factory=dict)
    in_flight: set[int] = field(default_factory=set)
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether this process still holds it, and its lease runs."""
        # Hot path, asked for each permit: inlines Lease.good.
        return not self.over and self.lease.lasting() < self.lease.until

    @property
    def usable(self) -> bool:
        """Whether it may give a turn now."""
        return not self.closing and self.good

    def __repr__(self) -> str:
        return f"<Home {self.name} fence={self.fence} open={self.open}>"


class TakenHome(NamedTuple):
    """What is known of a home that this process has just taken.

    Attributes:
        free_s: Seconds for which it must not be requested yet.
        age_s: Seconds since it was left, or since its last owner's lease ended; None if no process ever held it.
        clean: Whether it was left: then `free_s` is all. Otherwise a request may have been sent until `age_s` ago.
        state: What its last owner gave to `hand_over`.
    """

    free_s: float
    age_s: float | None
    clean: bool
    state: str | None


class Tenant(Protocol):
    """What homes are given to: a pacer that is shared between processes."""

    def take_over(self, home: Home, taken: TakenHome) -> None:
        """Delay the scopes of a taken home, and restore their state. Called before any turn is granted there."""

    def hand_over(self, home: str) -> tuple[float, str | None]:
        """Return what is left of the home's delay (seconds), and its state: JSON of at most 1,000 octets.

        Called only while no turn is open there.
        """

    def waits(self, home: str) -> bool:
        """Return whether a request waits here for a turn of the home. If not, the home may be given to another process."""


class Homes(Protocol):
    """The homes of this process in a crawl of many processes.

    Attributes:
        tenant: The pacer, which is told of homes that come and go. It is set before the first home is taken.
    """

    tenant: Tenant

    @property
    def live(self) -> int:
        """How many processes share the crawl, this one included."""

    def held(self, name: str) -> Home | None:
        """Return the home of this name if it may give a turn now: it is good, and not closing."""

    async def take(self, name: str) -> Home:
        """Wait until the home of this name is held. A wait that is cancelled leaves nothing behind.

        Raises:
            StoreFailed: The store has been away for too long. The message says since when, and the last error.
            StoreEmptied: The store lost the crawl.
            GateClosed: The gate was closed.
        """

    def entered(self, home: Home, /) -> None:
        """Count a turn that was granted at a home."""

    def left(self, home: Home, /) -> None:
        """Count a turn that was released, or given back. If it was the last of a closing home, the home leaves."""

    def rests(self, home: Home, seconds: float) -> None:
        """Write a delay of the home of many seconds through, so that it outlives this process."""


class SavedScope(NamedTuple):
    """One scope of a home that was handed over.

    Attributes:
        name: Its name for all processes.
        rest_s: Seconds for which its delay still runs.
        delay_s: Its delay after an ordinary response, if robots.txt or the policy made it longer than usual; else 0.
        memory: What the throttle remembers of the origin, as text.
        failures: Failures in a row.
        openings: How often its circuit opened.
        is_open: Whether its circuit is open.
        pages: Requests for its pages, if it is an origin with a budget.
        octets: Octets of them.
        failed: Failures in a row that count in the budget.
    """

    name: str
    rest_s: float = 0.0
    delay_s: float = 0.0
    memory: str = ""
    failures: int = 0
    openings: int = 0
    is_open: bool = False
    pages: int = 0
    octets: int = 0
    failed: int = 0

    @property
    def tells(self) -> bool:
        """Whether there is anything to tell."""
        return any(self[1:])

    @property
    def counts(self) -> bool:
        """Whether it knows of refusals, failures or what was spent of a budget."""
        return any(self[3:])

    def worst(self, other: "SavedScope") -> "SavedScope":
        """Return the larger counts of both."""
        return SavedScope._make((*self[:3], self.memory or other.memory, *map(max, self[4:], other[4:])))


class HomeState(NamedTuple):
    """The scopes of a home.

    Attributes:
        scopes: The scopes of which there is anything to tell.
        unclean_s: Seconds since a request may have been sent by an owner that ended without a word, if the scopes' delays were not
            kept since; None if they were.
    """

    scopes: tuple[SavedScope, ...] = ()
    unclean_s: float | None = None


def _memory(given: object) -> str:
    """Return the text of a memory; none for a number, as an earlier version wrote. Raises ValueError."""
    if type(given) is int and given >= 0:
        return ""
    if not isinstance(given, str):
        raise ValueError(f"{given!r} is no memory")  # noqa: TRY004 - as b85decode does
    b85decode(given)
    return given


def encoded(state: HomeState) -> tuple[str | None, float]:
    """Return the JSON, or None if there is nothing to tell; and the longest delay of the scopes that it has no space for."""
    first = {} if state.unclean_s is None else {"u": math.floor(state.unclean_s * 1_000) / 1_000}
    telling = sorted((each for each in state.scopes if each.tells), key=lambda each: -each.rest_s)
    count = len(telling)
    while len(text := _json(first, telling[:count]).encode()) > _MOST_OCTETS:
        count = count * 3 // 4
    left_out = max((each.rest_s for each in telling[count:]), default=0.0)
    return (text.decode() if count or first else None), left_out


def decoded(text: str | None) -> HomeState | None:
    """Read the JSON. None if it cannot be interpreted: another version may have written it."""
    if text is None:
        return HomeState()
    try:
        given = json.loads(text)
        # A number in the place of the memory is of an earlier version: refusals in a row.
        scopes = tuple(SavedScope(*row[:3], *map(_memory, row[3:4]), *row[4:]) for row in given.get("s", ()))
        unclean_s = given.get("u")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    rows: list[tuple[Any, ...]] = list(scopes)
    durations = [each for row in rows for each in row[1:3]] + ([] if unclean_s is None else [unclean_s])
    counts = [each for row in rows for each in row[4:]]
    understood = (
        all(isinstance(each, str) for row in rows for each in (row[0], row[3]))
        and all(isinstance(each, int | float) and 0 <= each < math.inf for each in durations)
        and all(isinstance(each, int) and each >= 0 for each in counts)
    )
    return HomeState(scopes, unclean_s) if understood else None


def _json(first: dict[str, float], scopes: Iterable[SavedScope]) -> str:
    rows = []
    for each in scopes:
        durations = (math.ceil(seconds * 1_000) / 1_000 for seconds in (each.rest_s, each.delay_s))
        row: list[Any] = [each.name, *durations, each.memory or 0, *map(int, each[4:])]
        while not row[-1]:
            row.pop()
        rows.append(row)
    return json.dumps(first | ({"s": rows} if rows else {}), separators=(",", ":"), ensure_ascii=False)
