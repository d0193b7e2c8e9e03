"""GuardedConnector: aiohttp's connector with the address guard and our own resolver."""

from collections.abc import Coroutine, Mapping
from typing import Any

import aiohttp
from aiohttp import ClientRequest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from polite.errors import InvalidOption, redact_url
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.transports.address_guard import AddressGuard, AddressRefused, connecting_to_proxy
from polite.transports.resolver import Given, named_resolver, require_valid


class ProxyRefused(aiohttp.ClientError):
    """A request would use a proxy that `FetchPolicy.proxy` does not name."""

    reason = Reason.PROXY_REFUSED


class GuardedConnector(aiohttp.TCPConnector):
    """Connects only where the policy permits.

    It checks each real address, after DNS and after each redirect.
    """

    def __init__(self, policy: FetchPolicy, *, resolver: Given | None = None, **options: object) -> None:
        if "socket_factory" in options:
            raise InvalidOption(
                "guarded_connector: socket_factory must not be given; the address guard is the socket factory"
            )
        self._guard = AddressGuard(policy)
        self._proxy = None if policy.proxy is None else URL(policy.proxy)
        require_valid(resolver)
        # The user closes a resolver of his own.
        self._own_resolver = (
            named_resolver(policy, resolver) if resolver is None or isinstance(resolver, Mapping) else None
        )
        ours: dict[str, Any] = {
            **options,
            "resolver": self._own_resolver or resolver,
            "socket_factory": self._guard,
        }
        super().__init__(**ours)

    def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Coroutine[Any, Any, Connection]:
        """Return a connection.

        Raises ProxyRefused, or ClientConnectorError with an AddressRefused as its `os_error`.
        """
        if req.proxy is None:
            return super().connect(req, traces, timeout)
        return self._connect_to_proxy(req, req.proxy, traces, timeout)

    async def _connect_to_proxy(
        self, req: ClientRequest, proxy: URL, traces: list[Trace], limits: aiohttp.ClientTimeout
    ) -> Connection:
        if self._proxy is None or _endpoint(proxy) != _endpoint(self._proxy):
            raise ProxyRefused(
                f"{redact_url(str(proxy))} is a proxy that FetchPolicy.proxy does not name; set FetchPolicy.proxy to use it"
            )
        # The proxy resolves names. Only a host that is an address can be checked here.
        self._check_host(req.connection_key, req.url.host or "")
        with connecting_to_proxy():
            return await super().connect(req, traces, limits)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, and the resolver if it is ours."""
        await super().close(abort_ssl=abort_ssl)
        if self._own_resolver is not None:
            await self._own_resolver.close()

    def _check_host(self, key: ConnectionKey, host: str) -> None:
        try:
            self._guard.check(host)
        except AddressRefused as error:
            raise aiohttp.ClientConnectorError(key, error) from error


def _endpoint(proxy: URL) -> tuple[str, str | None, int | None]:
    return proxy.scheme, proxy.host, proxy.port
