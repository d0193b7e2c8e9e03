"""Which scopes a URL belongs to beside its origin: registrable domain, addresses, scopes of the user's own, the whole crawl."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from polite.errors import InvalidOption
from polite.options import checked
from polite.origin import Target


class ScopePolicy(Protocol):
    """A URL's scopes, narrowest first, at least one: anything hashable. Pure and fast: it is asked for each request.

    Where it has a method `limit(scope)` that gives a ScopeLimit, this holds for the scope; None: what the policy says for all.
    """

    def __call__(self, target: Target, /) -> tuple[Hashable, ...]: ...


class ScopeName(NamedTuple):
    """A scope that is no origin: its kind ("domain", "address", "crawl", or the user's own) and its name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class ScopeLimit:
    """A scope rests for `delay` seconds after each request, and `concurrency` of its requests may be under way at one time.

    With a concurrency of 1 the rest is counted as the policy's anchor says, with more from the grant. Raises InvalidOption.
    """

    delay: float = 1.0
    concurrency: int = 1

    def __post_init__(self) -> None:
        checked("ScopeLimit.delay", self.delay)
        if type(self.concurrency) is not int or self.concurrency < 1:
            raise InvalidOption(
                f"ScopeLimit.concurrency={self.concurrency!r}: a whole number of 1 or more is needed"
            )


@dataclass(frozen=True, slots=True)
class CustomScope:
    """A kind of scope of the user's own: `by` gives its name for a URL, or None where the URL belongs to none of the kind.

    `by` must be pure and fast: it is asked for each request. Raises InvalidOption.
    """

    kind: str
    by: Callable[[Target], str | None]
    limit: ScopeLimit = ScopeLimit()

    def __post_init__(self) -> None:
        if type(self.kind) is not str or self.kind in {"", "domain", "address", "crawl"}:
            raise InvalidOption(f"CustomScope.kind={self.kind!r}: a name that is not taken is needed")
        if not callable(self.by):
            raise InvalidOption(f"CustomScope.by={self.by!r}: a function of a Target is needed")
        _limit("CustomScope.limit", self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    """Each URL takes turns at its origin, by the policy's own delay and concurrency, and at each of these that is given.

    `domain`: its registrable domain by the public suffix list; needs `pip install 'polite-crawl[domains]'`. `address`: each IP
    address that its host has. `crawl`: all URLs there are. `own`: kinds of the user's. Raises InvalidOption.
    """

    domain: ScopeLimit | None = None
    address: ScopeLimit | None = None
    crawl: ScopeLimit | None = None
    own: Sequence[CustomScope] = ()

    def __post_init__(self) -> None:
        for name in ("domain", "address", "crawl"):
            if getattr(self, name) is not None:
                _limit(f"Scopes.{name}", getattr(self, name))
        object.__setattr__(self, "own", _own_scopes(self.own))
        if len({each.kind for each in self.own}) < len(self.own):
            raise InvalidOption(f"Scopes.own={self.own!r}: each kind once")

    @property
    def limits(self) -> dict[str, ScopeLimit]:
        """By kind."""
        limits = {"domain": self.domain, "address": self.address, "crawl": self.crawl}
        limits |= {each.kind: each.limit for each in self.own}
        return {kind: limit for kind, limit in limits.items() if limit is not None}


class Found(Protocol):
    """What it takes to name some scopes (ports.AddressSource)."""

    def known(self, host: str) -> tuple[str, ...]: ...


class ScopeResolver:
    """Scopes, and what it takes to name them: a ScopePolicy. `domain_of`: host to registrable domain."""

    def __init__(
        self,
        scopes: Scopes,
        *,
        domain_of: Callable[[str], str | None] | None = None,
        addresses: Found | None = None,
    ) -> None:
        self._scopes = scopes
        self._limits = scopes.limits
        self._domain_of = domain_of if scopes.domain is not None else None
        self._addresses = addresses if scopes.address is not None else None
        self._crawl = () if scopes.crawl is None else (ScopeName("crawl", ""),)

    def __call__(self, target: Target, /) -> tuple[Hashable, ...]:
        """Narrowest first: a long rest of one origin stands in nobody else's line."""
        host = target.origin.host
        names: list[Hashable] = [target.origin]
        if self._domain_of is not None and (domain := self._domain_of(host)) is not None:
            names.append(ScopeName("domain", domain))
        if self._addresses is not None:
            names += [ScopeName("address", address) for address in self._addresses.known(host)]
        for own in self._scopes.own:
            if (name := own.by(target)) is not None:
                names.append(ScopeName(own.kind, name))
        return (*names, *self._crawl)

    def limit(self, scope: Hashable) -> ScopeLimit | None:
        """What holds for a scope, or None for an origin."""
        return self._limits.get(scope.kind) if isinstance(scope, ScopeName) else None


def _own_scopes(value: object) -> tuple[CustomScope, ...]:
    if isinstance(value, list | tuple) and all(isinstance(each, CustomScope) for each in value):
        return tuple(value)
    raise InvalidOption(f"Scopes.own={value!r}: a list or tuple of CustomScope is needed")


def _limit(name: str, value: object) -> None:
    if not isinstance(value, ScopeLimit):
        raise InvalidOption(f"{name}={value!r}: a ScopeLimit is needed")
