"""Resolver: names to addresses with aiodns; and the reason why a name has none, or a connection failed."""

import asyncio
import errno
import re
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING, TypeAlias

import aiodns
from aiodns import error as ares
from aiohttp.abc import AbstractResolver, ResolveResult

from polite.errors import InvalidOption, redact_url
from polite.options import instance
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.url.errors import InvalidPart
from polite.url.host import is_address, parse_host

if TYPE_CHECKING:
    from pycares import AddrInfoNode

# c-ares tries each nameserver this often, and waits twice as long the second time, so the first try has a third of the time.
_TRIES = 2
# Seconds for one name: a slower nameserver is no use to a crawl. Also less than the timeout of the whole fetch, so the failure has
# the right reason.
_LONGEST_S = 9.0
_SHARE_OF_DEADLINE = 0.6
# Concurrent queries. Nameservers drop queries beyond that.
_CONCURRENT = 64

_REASONS = {
    ares.ARES_ENOTFOUND: Reason.DNS_NXDOMAIN,
    ares.ARES_ENODATA: Reason.DNS_NODATA,
    ares.ARES_ESERVFAIL: Reason.DNS_SERVFAIL,
    ares.ARES_ETIMEOUT: Reason.DNS_TIMEOUT,
    ares.ARES_EREFUSED: Reason.DNS_REFUSED,
    ares.ARES_EBADRESP: Reason.DNS_BAD_ANSWER,
    ares.ARES_EFORMERR: Reason.DNS_BAD_ANSWER,
}


_OS_REASONS = {
    errno.ECONNREFUSED: Reason.CONNECTION_REFUSED,
    errno.ECONNRESET: Reason.CONNECTION_LOST,
    errno.ECONNABORTED: Reason.CONNECTION_LOST,
    errno.EPIPE: Reason.CONNECTION_LOST,
    errno.ETIMEDOUT: Reason.TIMEOUT,
} | dict.fromkeys(
    (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN, errno.EADDRNOTAVAIL),
    Reason.HOST_UNREACHABLE,
)


def reason_of(error: OSError) -> Reason:
    """Return the reason of a failed connection, CONNECT_FAILED by default."""
    if isinstance(error, TimeoutError):
        return Reason.TIMEOUT
    return _OS_REASONS.get(error.errno or 0, Reason.CONNECT_FAILED)


class NameNotResolved(OSError):
    """A name without an address.

    Attributes:
        reason: why.
    """

    def __init__(self, host: str, reason: Reason, detail: str) -> None:
        super().__init__(None, f"{host}: {detail}")
        self.reason = reason


class Resolver(AbstractResolver):
    """One aiodns channel of our own.

    Args:
        nameservers: used instead of the system's, if there are any.
        timeout_s: seconds for one name, all tries together.
    """

    def __init__(self, nameservers: tuple[str, ...] = (), *, timeout_s: float = _LONGEST_S) -> None:
        for each in map(str, nameservers):
            bare = each if each.count(":") > 1 and each[0] != "[" else _with_port(each)[0].strip("[]")
            try:
                ip_address(bare)
            except ValueError:
                must = f'must be "address" or "address:port" each, got {each!r}'
                raise InvalidOption(must, option="FetchPolicy: nameservers") from None
        self._nameservers = list(nameservers) or None
        self._timeout_s = timeout_s
        self._capacity = asyncio.Semaphore(_CONCURRENT)
        self._opened: aiodns.DNSResolver | None = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses of a host, for happy eyeballs (RFC 8305). Raises NameNotResolved."""
        nodes = await self._ask(host, port, family)
        return [_result(host, node.addr[0].decode("ascii"), port, node.family) for node in nodes]

    async def addresses(self, host: str) -> tuple[list[str], float]:
        """Return all addresses of a host, and their shortest time to live (ports.AddressSource).

        Raises NameNotResolved.
        """
        nodes = await self._ask(host, 0, socket.AF_UNSPEC)
        return [node.addr[0].decode("ascii") for node in nodes], float(min(node.ttl for node in nodes))

    async def _ask(self, host: str, port: int, family: socket.AddressFamily) -> "list[AddrInfoNode]":
        if not host:
            # c-ares takes an empty name for the local host.
            raise NameNotResolved(host, Reason.DNS_FAILURE, "an empty name")
        if self._opened is None:
            # Opened for the first name: a crawl of addresses needs none.
            self._opened = aiodns.DNSResolver(self._nameservers, timeout=self._timeout_s / 3, tries=_TRIES)
        try:
            # c-ares waits for at least 250 ms in each try, whatever its timeout.
            async with self._capacity, asyncio.timeout(self._timeout_s):
                info = await self._opened.getaddrinfo(host, port=port, type=socket.SOCK_STREAM, family=family)
        except TimeoutError as error:
            detail = f"no response within {self._timeout_s:g} s"
            raise NameNotResolved(host, Reason.DNS_TIMEOUT, detail) from error
        except ares.DNSError as error:
            code, detail = (*error.args, None, "")[:2]
            raise NameNotResolved(host, _REASONS.get(code, Reason.DNS_FAILURE), str(detail)) from error
        if not info.nodes:
            raise NameNotResolved(host, Reason.DNS_NODATA, "no address")
        return info.nodes

    async def close(self) -> None:
        """Close the channel. May be called twice."""
        if self._opened is not None:
            await self._opened.close()


def _result(name: str, address: str, port: int, family: int) -> ResolveResult:
    return ResolveResult(hostname=name, host=address, port=port, family=family, proto=0, flags=0)


# How long a named address, and one of a resolver that tells no lifetime, is valid (seconds).
_LIFETIME_S = 60.0
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_MOST_PORT = 65_535

# What a user gives: names with addresses, or a resolver.
Given: TypeAlias = Mapping[str, str] | AbstractResolver
_Endpoint: TypeAlias = tuple[str, int | None]


def named_resolver(policy: FetchPolicy, given: Given | None) -> "Resolver | NamedHosts | LentResolver":
    """Return the resolver of a policy, with the names that a user gave, or the user's own resolver.

    Raises:
        InvalidOption: if a name or an address is invalid.
    """
    require_valid(given)
    if given is not None and not isinstance(given, Mapping):
        return LentResolver(given, timeout_s=policy.timeout)
    # It ends before the policy's timeout.
    timeout_s = min(_LONGEST_S, policy.timeout * _SHARE_OF_DEADLINE)
    nameservers = Resolver(tuple(policy.nameservers), timeout_s=timeout_s)
    return nameservers if given is None else NamedHosts(parsed_names(given), nameservers)


def require_valid(given: Given | None) -> None:
    """Raise InvalidOption if this is no resolver, or if a name or an address is invalid."""
    if isinstance(given, Mapping):
        parsed_names(given)
    elif given is not None and not callable(getattr(given, "resolve", None)):
        raise InvalidOption(
            f"resolver must be a mapping of hosts to addresses or an aiohttp.abc.AbstractResolver, got {given!r}"
        )


def parsed_names(names: Mapping[str, str]) -> dict[_Endpoint, _Endpoint]:
    """Return the addresses by host, and by host and port. Raises InvalidOption."""
    parsed: dict[_Endpoint, _Endpoint] = {}
    for name, address in names.items():
        endpoint = _named(name)
        if endpoint in parsed:
            raise InvalidOption(f"resolver: {name!r} has two addresses")
        host, port = "", None
        if isinstance(address, str):
            bare = address.count(":") > 1 and not address.startswith("[")
            host, port = (address, None) if bare else _with_port(address)
        try:
            parsed[endpoint] = str(ip_address(host.removeprefix("[").removesuffix("]"))), port
        except ValueError:
            raise InvalidOption(
                f'resolver: {name!r} must have an IP address, "address:port" or "[IPv6 address]:port", got {address!r}'
            ) from None
    return parsed


def _named(name: object) -> _Endpoint:
    """Return the canonical host, and the port if the name is "host:port"."""
    name = instance("resolver: a host", name, str)
    if "/" in name:
        raise InvalidOption(f"resolver: {redact_url(name)!r} must be a host, not a URL")
    if "*" in name:
        raise InvalidOption(f"resolver: {name!r} has a wildcard, which matches nothing; name each host")
    host, port = _with_port(name)
    try:
        host = parse_host(host, special=True).removesuffix(".")
    except InvalidPart as error:
        raise InvalidOption(f'resolver: {name!r} is neither "host" nor "host:port": {error}') from error
    if is_address(host):
        raise InvalidOption(f"resolver: {name!r} is an address, which is never looked up; name a host")
    return host, port


def _with_port(text: str) -> _Endpoint:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        return text, None
    if not _PORT.fullmatch(port) or not 0 < int(port) <= _MOST_PORT:
        raise InvalidOption(f"resolver: the port of {text!r} must be a number from 1 to {_MOST_PORT}")
    return host, int(port)


class NamedHosts(AbstractResolver):
    """Returns the named address of a host, and looks up all other hosts.

    Args:
        names: addresses by host and port; a port of None is any. One port is more specific than any.
        others: resolves hosts without a named address. It is closed with this.
    """

    def __init__(self, names: Mapping[_Endpoint, _Endpoint], others: Resolver) -> None:
        self._names = names
        self._others = others

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the named address, or those that the nameservers return. Raises NameNotResolved."""
        bare = host.removesuffix(".")
        named = self._names.get((bare, port)) or self._names.get((bare, None))
        if named is None:
            return await self._others.resolve(host, port, family)
        address, there = named
        own = socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6
        if family not in {socket.AF_UNSPEC, own}:
            raise NameNotResolved(host, Reason.DNS_NODATA, f"{address} is not of the requested family")
        return [_result(host, address, there or port, own)]

    async def addresses(self, host: str) -> tuple[list[str], float]:
        """Return all addresses of a host, whatever the port (ports.AddressSource). Raises NameNotResolved."""
        bare = host.removesuffix(".")
        named = {address for (each, _), (address, _) in self._names.items() if each == bare}
        if (bare, None) in self._names:
            return sorted(named), _LIFETIME_S
        try:
            # Ports without a named address are looked up.
            found, good_s = await self._others.addresses(host)
        except NameNotResolved:
            if not named:
                raise
            found, good_s = [], _LIFETIME_S
        return sorted({*named, *found}), good_s

    async def close(self) -> None:
        """Close the resolver of other hosts. May be called twice."""
        await self._others.close()


class LentResolver(AbstractResolver):
    """A resolver of the user's, which the user closes: sessions may share it.

    Args:
        resolver: the user's.
        timeout_s: seconds for one host.
    """

    def __init__(self, resolver: AbstractResolver, *, timeout_s: float) -> None:
        self._resolver = resolver
        self._timeout_s = timeout_s

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return what the user's resolver returns. Raises OSError."""
        return await self._resolver.resolve(host, port, family)

    async def addresses(self, host: str) -> tuple[list[str], float]:
        """Return all addresses of a host (ports.AddressSource). Raises OSError."""
        async with asyncio.timeout(self._timeout_s):
            found = await self._resolver.resolve(host, 0, socket.AF_UNSPEC)
        return [each["host"] for each in found], _LIFETIME_S

    async def close(self) -> None:
        """Leave the user's resolver open."""
