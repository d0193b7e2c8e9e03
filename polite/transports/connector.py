"""guarded_connector: the address guard for the crawler's own sessions."""

from importlib import import_module
from typing import TYPE_CHECKING

from polite.robots.policy import FetchPolicy

if TYPE_CHECKING:
    import aiohttp


def guarded_connector(policy: FetchPolicy | None = None, **options: object) -> "aiohttp.TCPConnector":
    """Return a connector for `aiohttp.ClientSession` that uses permitted addresses only.

    By default, public addresses are permitted. It checks the real address of each connection, after DNS and after each
    redirect. Call it while an event loop runs; the session closes it.

    Example:
        async with aiohttp.ClientSession(connector=polite.guarded_connector()) as session:
            async with session.get("https://example.com/", allow_redirects=False) as response:
                body = await response.read()

    A blocked address raises aiohttp.ClientConnectorError, and a proxy that `policy.proxy` does not name raises
    aiohttp.ClientError. The message names the option that permits it.

    Args:
        policy: the permitted addresses, the nameservers and the proxy.
        options: options of `aiohttp.TCPConnector` except `socket_factory`. `resolver` is an `aiohttp.abc.AbstractResolver`, or a
            mapping of hosts to addresses, as `open_gate(resolver=...)` takes it.

    Raises:
        InvalidOption: if `socket_factory` is given, or `resolver` is invalid.
    """
    # Imported here, so that `import polite` loads no HTTP client.
    connector: aiohttp.TCPConnector = import_module("polite.transports.guarded_connector").GuardedConnector(
        policy or FetchPolicy(), **options
    )
    return connector
