"""Resolver: names to addresses with aiodns; tells missing names from failing nameservers."""

import asyncio
import socket
from typing import TYPE_CHECKING

import aiodns
from aiodns import error as ares
from aiohttp.abc import AbstractResolver, ResolveResult

from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason

# c-ares tries each nameserver this often, and waits twice as long the second time, so the first try has a third of the time.
_TRIES = 2
# Seconds for one name: a slower nameserver is no use to a crawl. Also less than the timeout of the whole fetch, so the failure has
# the right reason.
_LONGEST_S = 9.0
_SHARE_OF_DEADLINE = 0.6
# Concurrent queries. Nameservers drop queries beyond that.
_CONCURRENT = 64

if TYPE_CHECKING:
    from pycares import AddrInfoNode

_REASONS = {
    ares.ARES_ENOTFOUND: Reason.DNS_NXDOMAIN,
    ares.ARES_ENODATA: Reason.DNS_NODATA,
    ares.ARES_ESERVFAIL: Reason.DNS_SERVFAIL,
    ares.ARES_ETIMEOUT: Reason.DNS_TIMEOUT,
    ares.ARES_EREFUSED: Reason.DNS_REFUSED,
    ares.ARES_EBADRESP: Reason.DNS_BAD_ANSWER,
    ares.ARES_EFORMERR: Reason.DNS_BAD_ANSWER,
}


class NameNotResolved(OSError):
    """A name without an address.

    Attributes:
        reason: why.
    """

    def __init__(self, host: str, reason: Reason, detail: str) -> None:
        super().__init__(None, f"{host}: {detail}")
        self.reason = reason


def resolver_for(policy: FetchPolicy) -> "Resolver":
    """Return a resolver for the policy's nameservers that ends before the policy's timeout."""
    timeout_s = min(_LONGEST_S, policy.timeout * _SHARE_OF_DEADLINE)
    return Resolver(tuple(policy.nameservers), timeout_s=timeout_s)


class Resolver(AbstractResolver):
    """One aiodns channel of our own.

    Args:
        nameservers: used instead of the system's, if there are any.
        timeout_s: seconds for one name, all tries together.
    """

    def __init__(self, nameservers: tuple[str, ...] = (), *, timeout_s: float = _LONGEST_S) -> None:
        self._nameservers = list(nameservers) or None
        self._timeout_s = timeout_s
        self._capacity = asyncio.Semaphore(_CONCURRENT)
        self._opened: aiodns.DNSResolver | None = None

    @property
    def _dns(self) -> aiodns.DNSResolver:
        """The channel. Opened for the first name: a crawl of addresses needs none."""
        if self._opened is None:
            self._opened = aiodns.DNSResolver(self._nameservers, timeout=self._timeout_s / 3, tries=_TRIES)
        return self._opened

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return all addresses of a host, for happy eyeballs (RFC 8305). Raises NameNotResolved."""
        nodes = await self._ask(host, port, family)
        return [
            ResolveResult(
                hostname=host,
                host=node.addr[0].decode("ascii"),
                port=port,
                family=node.family,
                proto=0,
                flags=0,
            )
            for node in nodes
        ]

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
        try:
            # c-ares waits for at least 250 ms in each try, whatever its timeout.
            async with self._capacity, asyncio.timeout(self._timeout_s):
                found = await self._dns.getaddrinfo(host, port=port, type=socket.SOCK_STREAM, family=family)
        except TimeoutError as error:
            detail = f"no response within {self._timeout_s:g} s"
            raise NameNotResolved(host, Reason.DNS_TIMEOUT, detail) from error
        except ares.DNSError as error:
            code, detail = (*error.args, None, "")[:2]
            raise NameNotResolved(host, _REASONS.get(code, Reason.DNS_FAILURE), str(detail)) from error
        if not found.nodes:
            raise NameNotResolved(host, Reason.DNS_NODATA, "no address")
        return found.nodes

    async def close(self) -> None:
        """Close the channel. May be called twice."""
        if self._opened is not None:
            await self._opened.close()
