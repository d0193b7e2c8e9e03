"""The scopes of a URL besides its origin: registrable domain, addresses, a user's own scopes, the whole crawl."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol

from polite.errors import InvalidOption
from polite.options import boolean, instance, integer, needing, number
from polite.origin import Target
from polite.url.host import is_address

# Hosts whose domain is remembered: a lookup costs as much as a whole permit.
_REMEMBERED = 100_000


def registrable_domains(option: str) -> Callable[[str], str | None]:
    """Return a function from hosts, as an Origin has them, to their registrable domain; None for an address.

    A host that is a public suffix is its own domain.

    Args:
        option: The option that needs them, for the error.

    Raises:
        InvalidOption: The public suffix list is not installed.

    >>> domain_of = registrable_domains("Scopes(domain=...)")
    >>> domain_of("www.example.co.uk"), domain_of("192.0.2.1")
    ('example.co.uk', None)
    """
    # Imported here: the list is an optional package.
    with needing(f"{option} needs the public suffix list", "domains"):
        from publicsuffixlist import PublicSuffixList  # noqa: PLC0415
    suffixes = PublicSuffixList()

    @lru_cache(_REMEMBERED)
    def domain_of(host: str) -> str | None:
        if is_address(host):
            return None
        name = host.rstrip(".")
        return suffixes.privatesuffix(name) or name

    return domain_of


class ScopePolicy(Protocol):
    """Names the scopes of a URL, narrowest first, at least one: any hashable values. Pure and fast: called for each request.

    An optional method `limit(scope)` returns the ScopeLimit of a scope, or None for the policy's own delay and concurrency.
    """

    def __call__(self, target: Target, /) -> tuple[Hashable, ...]: ...


HomeKind = Literal["host", "domain", "address"] | Callable[[Target], str]
"""What one process of a shared crawl owns and paces alone, or a function that names it for the root URL of an origin."""


class ScopeName(NamedTuple):
    """A scope that is not an origin.

    Attributes:
        kind: "domain", "address", "crawl", or a user's own kind.
        name: Its name within the kind.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class ScopeLimit:
    """The delay, the concurrency and the budget of a scope.

    >>> ScopeLimit(delay=0.0, concurrency=50).max_pages is None
    True

    Attributes:
        delay: Seconds between two requests. With a concurrency of 1 they count from the policy's anchor, else from the grant.
        concurrency: Requests that may be under way at one time.
        max_pages: Pages that are requested at most of all origins whose root URL has the scope; None for no limit. Then these
            origins get no more requests, as with `PacingPolicy.max_pages`.
        max_bytes: Octets of these pages, as with `PacingPolicy.max_bytes`.

    Raises:
        InvalidOption: A value is out of range.
    """

    delay: float = 1.0
    concurrency: int = 1
    max_pages: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        number("ScopeLimit: delay", self.delay)
        integer("ScopeLimit: concurrency", self.concurrency, least=1)
        for name in ("max_pages", "max_bytes"):
            if getattr(self, name) is not None:
                integer(f"ScopeLimit: {name} (None for no limit)", getattr(self, name), least=1)

    @property
    def budgeted(self) -> bool:
        """Whether it has a budget."""
        return self.max_pages is not None or self.max_bytes is not None


@dataclass(frozen=True, slots=True)
class CustomScope:
    """A user's own kind of scope.

    >>> def customer(target: Target) -> str | None:
    ...     return "acme" if target.origin.host.endswith(".acme.example.com") else None
    >>> CustomScope("customer", customer, ScopeLimit(delay=4.0)).kind
    'customer'

    Attributes:
        kind: Its name.
        by: Returns the scope's name for a URL, or None if the URL has no scope of this kind. Pure and fast: called for each
            request.
        limit: Its delay and concurrency.
        divide: Whether the processes of a shared crawl divide the limit between them: of n processes, each has n times the delay,
            and the n-th part of the concurrency, at least 1. Otherwise one process at a time has the scope, and keeps the limit
            exactly. Without a shared store it has no effect.

    Raises:
        InvalidOption: The kind is taken, or a value has the wrong type.
    """

    kind: str
    by: Callable[[Target], str | None]
    limit: ScopeLimit = ScopeLimit()
    divide: bool = False

    def __post_init__(self) -> None:
        if type(self.kind) is not str or self.kind in {"", "domain", "address", "crawl"}:
            raise InvalidOption(f"CustomScope: kind must be a name that is not taken, got {self.kind!r}")
        if not callable(self.by):
            raise InvalidOption(f"CustomScope: by must be a function of a Target, got {self.by!r}")
        instance("CustomScope: limit", self.limit, ScopeLimit)
        boolean("CustomScope: divide", self.divide)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """The scopes of a URL. Each URL takes turns at its origin, and at each of these that is given.

    >>> Scopes(domain=ScopeLimit(delay=0.5), crawl=ScopeLimit(delay=0.0, concurrency=50)).address is None
    True

    Attributes:
        domain: The registrable domain by the public suffix list. Needs `pip install 'polite-crawl[domains]'`.
        address: Each IP address of the host.
        crawl: All URLs.
        custom: A user's own kinds.

    Raises:
        InvalidOption: A value has the wrong type, or a kind is given twice.
    """

    domain: ScopeLimit | None = None
    address: ScopeLimit | None = None
    crawl: ScopeLimit | None = None
    custom: Sequence[CustomScope] = ()

    def __post_init__(self) -> None:
        for name in ("domain", "address", "crawl"):
            if getattr(self, name) is not None:
                instance(f"Scopes: {name}", getattr(self, name), ScopeLimit)
        given: object = self.custom
        if not isinstance(given, list | tuple) or not all(isinstance(each, CustomScope) for each in given):
            raise InvalidOption(f"Scopes: custom must be a list or tuple of CustomScope, got {given!r}")
        object.__setattr__(self, "custom", tuple(given))
        if len({each.kind for each in self.custom}) < len(self.custom):
            raise InvalidOption(f"Scopes: custom must have each kind once, got {self.custom!r}")

    @property
    def limits(self) -> dict[str, ScopeLimit]:
        """The limits of the given scopes, by kind."""
        limits = {"domain": self.domain, "address": self.address, "crawl": self.crawl}
        limits |= {each.kind: each.limit for each in self.custom}
        return {kind: limit for kind, limit in limits.items() if limit is not None}


def checked(named: ScopePolicy) -> ScopePolicy:
    """Return a user's function of scopes that raises InvalidOption for a result that names none: a text would be many scopes."""

    def refused(target: Target, got: object) -> InvalidOption:
        must = f"must return a tuple of hashable scopes, one at least, for {target.url}, got {got!r}"
        return InvalidOption(f"PacingPolicy: scopes ({named!r}) {must}", url=target.url)

    def scopes_of(target: Target, /) -> tuple[Hashable, ...]:
        try:
            found: object = named(target)
            # A tuple inside may hold what has no hash.
            scopes = found if type(found) is tuple and hash(found) is not None else ()
        except Exception as error:
            raise refused(target, error) from error
        if not scopes:
            raise refused(target, found)
        return scopes

    return scopes_of


class KnownAddresses(Protocol):
    """The addresses of hosts, as far as they were looked up."""

    def known(self, host: str) -> tuple[str, ...]: ...


class ScopeResolver:
    """Names the scopes of a URL: a ScopePolicy made of Scopes.

    Args:
        scopes: The scopes to name.
        domain_of: Returns the registrable domain of a host; needed for `Scopes(domain=...)`.
        addresses: Knows the addresses of hosts; needed for `Scopes(address=...)`.

    Attributes:
        addresses: The same, or None if addresses are no scopes.
    """

    def __init__(
        self,
        scopes: Scopes,
        *,
        domain_of: Callable[[str], str | None] | None = None,
        addresses: KnownAddresses | None = None,
    ) -> None:
        self._scopes = scopes
        self._limits = scopes.limits
        self._divided = frozenset(each.kind for each in scopes.custom if each.divide) | {"crawl"}
        self._domain_of = domain_of if scopes.domain is not None else None
        self.addresses: KnownAddresses | None = addresses if scopes.address is not None else None
        self._crawl = () if scopes.crawl is None else (ScopeName("crawl", ""),)

    def __call__(self, target: Target, /) -> tuple[Hashable, ...]:
        """Return the scopes, narrowest first, so that an origin's long delay does not block others in wider scopes."""
        host = target.origin.host
        names: list[Hashable] = [target.origin]
        if self._domain_of is not None and (domain := self._domain_of(host)) is not None:
            names.append(ScopeName("domain", domain))
        if self.addresses is not None:
            names += [ScopeName("address", address) for address in self.addresses.known(host)]
        for custom in self._scopes.custom:
            try:
                name = custom.by(target)
            except Exception as error:
                said = f"CustomScope: by failed for {target.url}: {error!r}"
                raise InvalidOption(said, url=target.url) from error
            if name is not None:
                instance(f"CustomScope: what by returns for {target.url}", name, str, "a str or None")
                names.append(ScopeName(custom.kind, name))
        return (*names, *self._crawl)

    def domain(self, host: str) -> str | None:
        """Return the registrable domain of a host, if domains are scopes."""
        return host if self._domain_of is None else self._domain_of(host)

    def limit(self, scope: Hashable) -> ScopeLimit | None:
        """Return the limits of a scope, or None for an origin."""
        return self._limits.get(scope.kind) if isinstance(scope, ScopeName) else None

    def divided(self, scope: Hashable) -> bool:
        """Whether the processes of a shared crawl divide the scope's limits between them: the crawl, and as `CustomScope` says."""
        return isinstance(scope, ScopeName) and scope.kind in self._divided

    def divide(self, processes: int) -> None:
        """Take one share of the divided limits. The rates of all processes together keep the limit."""
        for kind, limit in self._scopes.limits.items():
            if kind in self._divided:
                share = max(1, limit.concurrency // processes)
                self._limits[kind] = replace(limit, delay=limit.delay * processes, concurrency=share)

    @property
    def divides(self) -> bool:
        """Whether any scope is divided."""
        return not self._divided.isdisjoint(self._limits)
