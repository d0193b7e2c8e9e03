"""What the user decides about pace: the delay between requests, its limits, and how many requests may wait."""

from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from ipaddress import IPv6Network, ip_address, ip_network
from typing import Any, Self, TypedDict, Unpack, get_args

from polite.errors import InvalidOption
from polite.options import boolean, instance, integer, number
from polite.origin import Origin, Target
from polite.pacing.hours import Hours
from polite.pacing.scopes import HomeKind, ScopeName, ScopePolicy, Scopes
from polite.pacing.throttle import REFUSALS, LongDelay
from polite.url.host import is_address

Options = tuple[tuple[str, Any], ...]
Override = tuple[Origin | str, Options]
"""An origin, an address range or a scope, and the options that differ there, by name. Made by `PacingPolicy.override`."""


_MAPPED = IPv6Network("::ffff:0:0/96")
# Of an origin's text, if it stands for all subdomains.
_WILD = "://*."


class Overrides(tuple[Override, ...]):  # noqa: SLOT001 - a tuple with slots of its own cannot be
    """Pairs of what they apply to and options, which are checked already. Each text occurs once: the last pair counts.

    An origin whose host begins with "*." stands for those of all its subdomains, with its scheme and port. A text stands for the
    origins whose root URL has this scope, such as "domain example.com", or an address in this range, such as "192.0.2.0/24".

    Attributes:
        scopes: The scopes and ranges of those that are no origins.
    """

    scopes: list[str]
    _by_text: dict[str, Override]
    _wild: bool
    _prefixes: list[int]

    def __new__(cls, pairs: Iterable[Override] = ()) -> Self:
        return cls._of({str(of): (of, options) for of, options in pairs})

    @classmethod
    def _of(cls, by_text: dict[str, Override]) -> Self:
        made = super().__new__(cls, by_text.values())
        made._by_text = by_text
        made._wild = any(_WILD in text for text in by_text)
        made.scopes = texts = [of for of, _ in made if isinstance(of, str)]
        prefixes = {int(text.partition("/")[2]) for text in texts if " " not in text}
        made._prefixes = sorted(prefixes, reverse=True)
        return made

    def options(self, origin: Origin, scopes: Iterable[Hashable] = ()) -> Options:
        """Return the options that apply to an origin: of the most specific override that has each; () without one."""
        found: dict[str, Any] = {}
        for _, options in reversed(self.of(origin, scopes)):
            found |= dict(options)
        return tuple(found.items())

    def of(self, origin: Origin, scopes: Iterable[Hashable] = ()) -> list[Override]:
        """Return the overrides that apply to an origin, which has these scopes, the most specific first."""
        texts = [origin.text]
        if self._wild:
            scheme, host = origin.text.split("://")
            labels = host.split(".")
            texts += [f"{scheme}{_WILD}{'.'.join(labels[at:])}" for at in range(1, len(labels))]
        if self.scopes:
            names = [each for each in scopes if isinstance(each, ScopeName)]
            texts += map(str, names)
            hosts = [origin.host] if is_address(origin.host) else []
            hosts += [each.name for each in names if each.kind == "address"]
            addresses = set()
            for each in hosts:
                with suppress(ValueError):  # it is unknown, or named by a function of the user's
                    addresses.add(ip_address(each.strip("[]")))
            texts += [
                str(ip_network((each, prefix), strict=False))
                for prefix in self._prefixes
                for each in addresses
                if prefix <= each.max_prefixlen
            ]
        return [own for text in texts if (own := self._by_text.get(text)) is not None]

    def put(self, of: Origin | str, options: Options) -> Self:
        """Return a copy with these options for what they apply to. The other pairs are neither hashed nor checked again."""
        return self._of(self._by_text | {str(of): (of, options)})

    def given(self, of: Origin | str) -> Options:
        """Return the options of this very override; () without one."""
        return self._by_text.get(str(of), (of, ()))[1]

    def changed(self, before: "Overrides") -> set[Hashable] | None:
        """Return the origins whose options differ from `before`; None if they may be any."""
        mine, theirs = self._by_text, before._by_text  # noqa: SLF001 - of its own class
        differing = [text for text in mine.keys() | theirs.keys() if mine.get(text) != theirs.get(text)]
        if any(_WILD in text or "://" not in text for text in differing):
            return None
        return {(mine.get(text) or theirs[text])[0] for text in differing}

    def most(self, name: str) -> float:
        """Return the largest value of an option among all origins, or 0. For one that is no number: 1 if any origin has it."""
        return self._largest.get(name, 0.0)

    @cached_property
    def _largest(self) -> dict[str, float]:
        largest: dict[str, float] = {}
        for _, options in self:
            for name, value in options:
                size = value if isinstance(value, int | float) else 1.0
                largest[name] = max(size, largest.get(name, 0.0))
        return largest


class Anchor(Enum):
    """When a delay starts: at the response's first byte, or at the end of the permit's block (slower).

    >>> Anchor("end") is Anchor.END
    True

    Attributes:
        FIRST_BYTE: at the report (`Permit.report`), or at `Permit.began` if that is earlier.
        END: at the end of the block.
    """

    FIRST_BYTE = "first-byte"
    END = "end"


def by_origin(target: Target) -> tuple[Hashable, ...]:
    """Return the default scope: requests to one origin take turns, independently of other origins."""
    return (target.origin,)


class OriginPacing(TypedDict, total=False):
    """The fields of a `PacingPolicy` that may differ between origins."""

    min_delay: float
    max_crawl_delay: float
    jitter: float
    concurrency: int
    max_retry_after: float
    backoff: float
    max_backoff: float
    learn: bool
    latency_factor: float
    max_latency_delay: float
    max_rate_limit_delay: float
    backoff_statuses: AbstractSet[int]
    on_long_delay: LongDelay
    obey_visit_time: bool
    hours: str | None
    may_undercut_site: bool
    circuit_failures: int
    circuit_rest: float
    max_pages: int | None
    max_bytes: int | None
    max_failures: int | None
    max_bytes_per_second: float | None


# With 0, no permit could be entered in time.
_LEAST_HOLD_S = 0.001
_NO_LIMIT = frozenset({"hours", "max_pages", "max_bytes", "max_failures", "max_bytes_per_second"})
# A licence or a payment is asked for: waiting changes nothing (RFC 9110, 15.5.2 and 15.5.3).
_NEVER_BACK_OFF = frozenset({401, 402})


@dataclass(frozen=True, slots=True, kw_only=True)
class PacingPolicy:
    """What the user decides about pace. Durations are in seconds of the monotonic clock.

    >>> PacingPolicy(min_delay=2.0).override("https://example.com", min_delay=5.0).at(Origin.of("https://example.com")).min_delay
    5.0

    Attributes:
        min_delay: The least delay of an origin after each request. Crawl-delay or Request-rate of its robots.txt lengthen it (T3).
        max_crawl_delay: The limit for Crawl-delay and Request-rate.
        on_long_delay: What becomes of a longer one: "cap" it to the limit, "obey" it, or "refuse" the
            origin's URLs (OriginDeclined; a frontier drops them).
        jitter: Up to this fraction of the delay is added at random.
        concurrency: Requests of one scope that may be under way at one time.
        scopes: The scopes at which a URL takes turns: Scopes, or a function of a Target that returns them, narrowest first.
        home: What one process of a shared crawl owns, and paces alone: a "host", a registrable "domain", an "address", or what a
            function returns for the root URL of an origin. Without a shared store it has no effect.
        anchor: When a delay starts.
        max_retry_after: The limit for the Retry-After of a response (T4).
        max_rate_limit_delay: The limit for what RateLimit and RateLimit-Policy of a response need; 0 to ignore them.
        backoff_statuses: The statuses that are refusals: 429 and 503, and perhaps 403 or 500.
        backoff: The first back-off after a refusal without Retry-After (T4). It at least doubles for each refusal in a row.
        max_backoff: The limit for that, and for `circuit_rest`.
        learn: Whether the pace of an origin that refuses requests is learned, and kept (`polite.throttles.LearnedPace`).
        detect_refusals: Whether challenges and blocks of a CDN count as refusals, whatever their status: `polite.refusal` of the
            header fields. For bodies there is `Permit.refused`.
        latency_factor: The least delay as a multiple of the last response time; 0 for none.
        max_latency_delay: The limit for that.
        obey_visit_time: Whether URLs wait outside the hours of the origin's Visit-time.
        hours: Hours outside which URLs wait as well, such as "01:00-05:00 Europe/Berlin"; None for all day. With a Visit-time, both
            must be open; if they never are at one time, the origin gets no requests (OriginDeclined). robots.txt does not wait.
        may_undercut_site: Whether the throttle of `open_gate(throttle=...)` may set a shorter delay than this policy: then that of
            the throttle counts, even if the site requests a longer one. For sites of your own; see `override`.
        circuit_failures: Failures in a row that open an origin's circuit; 0 for never.
        circuit_rest: How long a circuit stays open, doubling each time. Then one request goes alone.
        max_pages: Pages of one origin that are requested at most; None for no limit, as for the other two. Once a budget is spent,
            the origin gets no more requests (OriginDeclined), and a frontier drops its tasks. With any budget, the gate holds about
            300 octets for each origin that it has requested, until it is closed.
        max_bytes: Octets of one origin's pages, as the crawler reports them (`Permit.received`), or by Content-Length. The page
            that reaches it is the last.
        max_failures: Failures of one origin in a row, those of its robots.txt included. With a concurrency above 1, requests in
            flight may fail beyond it.
        max_bytes_per_second: Octets of one host's pages in a second, on average, counted as for `max_bytes`; None for no ceiling.
            After a page the host rests for as long as its octets take at this rate, counted from its turn, and at most for
            `max_retry_after`. How fast one response is read is the crawler's.
        max_hold: A permit that is held for longer, entered or not, loses its turn (events.Reclaimed).
        max_waiting: Requests that may wait at one time.
        overrides: Options of single origins, ranges and scopes; see `override`.

    Raises:
        InvalidOption: A value is out of range.
    """

    min_delay: float = 1.0
    max_crawl_delay: float = 300.0
    jitter: float = 0.0
    concurrency: int = 1
    scopes: ScopePolicy | Scopes = by_origin
    home: HomeKind = "host"
    anchor: Anchor = Anchor.FIRST_BYTE
    max_retry_after: float = 86_400.0
    max_rate_limit_delay: float = 86_400.0
    backoff_statuses: AbstractSet[int] = REFUSALS
    backoff: float = 10.0
    max_backoff: float = 3_600.0
    learn: bool = True
    detect_refusals: bool = False
    latency_factor: float = 0.0
    max_latency_delay: float = 30.0
    on_long_delay: LongDelay = "cap"
    obey_visit_time: bool = True
    hours: str | None = None
    may_undercut_site: bool = False
    circuit_failures: int = 10
    circuit_rest: float = 60.0
    max_pages: int | None = None
    max_bytes: int | None = None
    max_failures: int | None = None
    max_bytes_per_second: float | None = None
    max_hold: float = 3_600.0
    max_waiting: int = 1_000_000
    overrides: tuple[Override, ...] = Overrides()

    def __post_init__(self) -> None:
        for name in (*OriginPacing.__annotations__, "detect_refusals", "max_waiting"):
            _check(name, getattr(self, name))
        object.__setattr__(self, "backoff_statuses", frozenset(self.backoff_statuses))
        number("PacingPolicy: max_hold", self.max_hold, least=_LEAST_HOLD_S)
        instance("PacingPolicy: anchor", self.anchor, Anchor, f"one of {[str(a) for a in Anchor]}")
        if not callable(self.scopes) and not isinstance(self.scopes, Scopes):
            raise InvalidOption(
                "PacingPolicy: scopes must be Scopes(...) or a function of a Target that "
                f"returns a tuple of scopes, got {self.scopes!r}"
            )
        if not callable(self.home) and self.home not in ("host", "domain", "address"):
            must = 'must be "host", "domain", "address", or a function of a Target that returns a name'
            raise InvalidOption(f"PacingPolicy: home {must}, got {self.home!r}")
        if not isinstance(self.overrides, Overrides):
            object.__setattr__(self, "overrides", _checked(self.overrides))

    def override(self, origin: str | Origin, **options: Unpack[OriginPacing]) -> Self:
        """Return the same policy with other options for one origin: `policy.override("https://example.com", min_delay=5)`.

        Instead of an origin it may be "https://*.example.com", for all subdomains; a scope, such as "domain example.com" or
        "customer acme" of a `CustomScope`, for the origins whose root URL has it; or an address range, such as "192.0.2.0/24". The
        last two need these `scopes`. If several apply to an origin, the most specific one that has an option decides it: in this
        order, and the shortest range first. Options that were overridden before and are not named now stay. The others follow the
        policy, also if it is replaced.

        Raises:
            InvalidURL: The origin cannot be parsed.
            InvalidOption: A value is out of range, or the option cannot differ between origins.
        """
        of = (
            origin
            if isinstance(origin, Origin)
            else _of_text(instance("PacingPolicy.override: origin", origin, str))
        )
        if isinstance(of, Origin) and ("*" in of.host.removeprefix("*.") or of.host == "*."):
            said = f'PacingPolicy.override({str(of)!r}): a "*" stands for subdomains, as in "https://*.example.com"'
            raise InvalidOption(said)
        before = overrides_of(self)
        own = dict(before.given(of)) | _named(of, options)
        # Only new options are checked: a policy of many origins is made in as many steps.
        return replace(self, overrides=before.put(of, tuple(own.items())))

    def at(self, origin: str | Origin) -> Self:
        """Return the policy that applies to an origin, as far as its URL says it: the gate alone knows its other scopes."""
        own = overrides_of(self).options(origin if isinstance(origin, Origin) else Origin.of(origin))
        return replace(self, **dict(own), overrides=Overrides()) if own else self


def overrides_of(policy: PacingPolicy) -> Overrides:
    """Return the overrides with their index, which a policy makes of any pairs."""
    assert isinstance(policy.overrides, Overrides)  # noqa: S101
    return policy.overrides


def _of_text(text: str) -> Origin | str:
    """Return what an override applies to. Raises InvalidURL, InvalidOption."""
    if "://" in text:
        return Origin.of(text)
    kind, space, name = text.partition(" ")
    try:
        match kind if space else "":
            case "" | "address":
                return _range(name if space else text)
            case "domain":
                return f"domain {Origin.of(f'https://{name}').host}"
    except ValueError as error:
        must = "must be a URL, a range of addresses, or a scope as in 'domain example.com'"
        raise InvalidOption(f"PacingPolicy.override({text!r}): it {must}: {error}") from error
    return text


def _range(text: str) -> str:
    """Return a range of addresses as it is spelled everywhere. IPv4-mapped IPv6 addresses are IPv4 addresses. Raises ValueError."""
    found = ip_network(text)
    if isinstance(found, IPv6Network) and found.prefixlen >= _MAPPED.prefixlen and found.subnet_of(_MAPPED):
        return str(ip_network((int(found.network_address) & 0xFFFF_FFFF, found.prefixlen - 96)))
    return str(found)


def _checked(overrides: object) -> Overrides:
    """Raises InvalidOption."""
    try:
        pairs = [(origin, tuple(_named(origin, dict(own)).items())) for origin, own in overrides]  # type: ignore[attr-defined]
        made_elsewhere = not all(isinstance(of, Origin) or _of_text(of) == of for of, _ in pairs)
    except InvalidOption:
        raise
    except (TypeError, ValueError):
        made_elsewhere = True
    if made_elsewhere:
        raise InvalidOption(f"PacingPolicy: overrides must be of PacingPolicy.override, got {overrides!r}")
    return Overrides(pairs)


def _named(origin: object, options: Mapping[str, object]) -> dict[str, Any]:
    """Return the options if each may differ between origins. Raises InvalidOption."""
    if unknown := sorted(set(options) - set(OriginPacing.__annotations__)):
        names, can = ", ".join(map(repr, unknown)), ", ".join(OriginPacing.__annotations__)
        cannot = f"{names} cannot differ between origins; these can: {can}"
        raise InvalidOption(f"PacingPolicy.override({str(origin)!r}): {cannot}")
    for name, value in options.items():
        _check(name, value)
    return {
        name: frozenset(value) if isinstance(value, AbstractSet) else value for name, value in options.items()
    }


def _check(name: str, value: object) -> None:
    """Refuse a value that a field of the policy, or of an override, cannot have."""
    option = f"PacingPolicy: {name}"
    if value is None and name in _NO_LIMIT:
        return
    match name:
        case "obey_visit_time" | "may_undercut_site" | "learn" | "detect_refusals":
            boolean(option, value)
        case "concurrency" | "max_waiting":
            integer(option, value, least=1)
        case "circuit_failures":
            integer(option, value, least=0)
        case "hours":
            Hours.of(value, option)
        case "max_bytes_per_second":
            number(f"{option} (None for no limit)", value, least=1.0)
        case "max_pages" | "max_bytes" | "max_failures":
            integer(f"{option} (None for no limit)", value, least=1)
        case "backoff_statuses":
            if not isinstance(value, AbstractSet) or not all(map(_is_refusal, value)):
                without = "without 401 and 402 (waiting changes nothing there)"
                must = f"must be a set of statuses from 400 to 599, {without}, got {value!r}"
                raise InvalidOption(must, option=option)
        case "on_long_delay":
            if value not in get_args(LongDelay):
                raise InvalidOption(f'must be "cap", "obey" or "refuse", got {value!r}', option=option)
        case _:
            number(option, value)


def _is_refusal(status: object) -> bool:
    return type(status) is int and 400 <= status <= 599 and status not in _NEVER_BACK_OFF
