"""The address guard for the crawler's own sessions: its page fetches need it as much as ours do."""

from importlib import import_module
from typing import TYPE_CHECKING

from polite.robots.policy import FetchPolicy

if TYPE_CHECKING:
    import aiohttp


def guarded_connector(policy: FetchPolicy | None = None, **options: object) -> "aiohttp.TCPConnector":
    """A connector for `aiohttp.ClientSession(connector=...)` that dials what `policy` permits: by default public addresses only.

    It looks at the real address of each connection, after DNS and after each redirect. `options` are those of
    `aiohttp.TCPConnector`, but for `socket_factory`; names are resolved by `policy.nameservers`, unless `resolver` is given. A
    refused address raises aiohttp.ClientConnectorError, a proxy that `policy.proxy` does not name aiohttp.ClientError: the
    message names the option. Call it where an event loop runs; the session closes it. Raises InvalidOption.
    """
    # Imported here, so that `import polite` loads no HTTP client.
    connector: aiohttp.TCPConnector = import_module("polite.transports.guarded_connector").GuardedConnector(
        policy or FetchPolicy(), **options
    )
    return connector
