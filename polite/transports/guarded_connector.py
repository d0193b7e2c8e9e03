"""aiohttp's connector with the address guard and our own resolver in it; it uses no proxy that was not asked for."""

from collections.abc import Coroutine
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
from polite.transports.resolver import resolver_for


class ProxyRefused(aiohttp.ClientError):
    """A request would go through a proxy that `FetchPolicy.proxy` does not name."""

    reason = Reason.PROXY_REFUSED


class GuardedConnector(aiohttp.TCPConnector):
    """Dials what the policy permits, and nothing else: each real address is looked at, after DNS and after each redirect."""

    def __init__(self, policy: FetchPolicy, **options: object) -> None:
        if "socket_factory" in options:
            raise InvalidOption(
                "guarded_connector(socket_factory=...): the guard itself is the socket factory"
            )
        self._guard = AddressGuard(policy)
        self._proxy = None if policy.proxy is None else URL(policy.proxy)
        self._own_resolver = None if "resolver" in options else resolver_for(policy)
        ours: dict[str, Any] = {"resolver": self._own_resolver, **options, "socket_factory": self._guard}
        super().__init__(**ours)

    def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Coroutine[Any, Any, Connection]:
        """A connection, or ProxyRefused, or ClientConnectorError with an AddressRefused in it."""
        if req.proxy is None:
            return super().connect(req, traces, timeout)
        return self._connect_to_proxy(req, req.proxy, traces, timeout)

    async def _connect_to_proxy(
        self, req: ClientRequest, proxy: URL, traces: list[Trace], limits: aiohttp.ClientTimeout
    ) -> Connection:
        if self._proxy is None or _place(proxy) != _place(self._proxy):
            raise ProxyRefused(f"{redact_url(str(proxy))} is not used: see FetchPolicy.proxy")
        # A proxy looks up names for us; what is an address already can be judged here.
        self._judge(req.connection_key, req.url.host or "")
        with connecting_to_proxy():
            return await super().connect(req, traces, limits)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, and the resolver when it is ours."""
        await super().close(abort_ssl=abort_ssl)
        if self._own_resolver is not None:
            await self._own_resolver.close()

    def _judge(self, key: ConnectionKey, host: str) -> None:
        try:
            self._guard.check(host)
        except AddressRefused as error:
            raise aiohttp.ClientConnectorError(key, error) from error


def _place(proxy: URL) -> tuple[str, str | None, int | None]:
    return proxy.scheme, proxy.host, proxy.port
