"""Names to addresses through aiodns, with an error that tells a name that does not exist from a resolver that fails."""

import socket

import aiodns
import aiodns.error
from aiohttp.abc import AbstractResolver, ResolveResult

from polite.robots.reason import Reason

# Seconds for one try, and how many tries at each nameserver; the fetch's own deadline is above both.
_TIMEOUT_S = 3.0
_TRIES = 2


class NameNotResolved(OSError):
    """A name that gave no address; `reason` tells why."""

    def __init__(self, host: str, reason: Reason, detail: str) -> None:
        super().__init__(None, f"{host}: {detail}")
        self.reason = reason


class Resolver(AbstractResolver):
    """One aiodns channel of our own. `nameservers` are asked instead of the system's when there are any."""

    def __init__(self, nameservers: tuple[str, ...] = ()) -> None:
        self._nameservers = list(nameservers) or None
        self._opened: aiodns.DNSResolver | None = None

    @property
    def _dns(self) -> aiodns.DNSResolver:
        """Opened at the first name: a crawl of addresses needs none."""
        if self._opened is None:
            self._opened = aiodns.DNSResolver(self._nameservers, timeout=_TIMEOUT_S, tries=_TRIES)
        return self._opened

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """All addresses of a host, for happy eyeballs to choose from. Raises NameNotResolved."""
        if not host:
            # c-ares takes an empty name for the local host.
            raise NameNotResolved(host, Reason.DNS_FAILURE, "an empty name")
        try:
            found = await self._dns.getaddrinfo(host, port=port, type=socket.SOCK_STREAM, family=family)
        except aiodns.error.DNSError as error:
            code, detail = (*error.args, "", "")[:2]
            missing = code == aiodns.error.ARES_ENOTFOUND
            raise NameNotResolved(
                host, Reason.DNS_NXDOMAIN if missing else Reason.DNS_FAILURE, str(detail)
            ) from error
        results = [
            ResolveResult(
                hostname=host,
                host=node.addr[0].decode("ascii"),
                port=port,
                family=node.family,
                proto=0,
                flags=0,
            )
            for node in found.nodes
        ]
        if not results:
            raise NameNotResolved(host, Reason.DNS_FAILURE, "no address")
        return results

    async def close(self) -> None:
        """Stop asking. May be called twice."""
        if self._opened is not None:
            await self._opened.close()
