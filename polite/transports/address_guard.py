"""AddressGuard: blocks connections to addresses that the policy does not permit."""

import errno
import socket
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from importlib import import_module
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any, TypeVar

from polite.options import instance
from polite.robots.policy import FetchPolicy
from polite.url.errors import InvalidPart
from polite.url.host import parse_host

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")
Address = IPv4Address | IPv6Address
# Characters of blocked hosts in a message.
_LONGEST_HOSTS = 300


def _networks(*texts: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, texts))


# `is_global` counts these as public, but they are not, or lead to addresses that are not (RFC 6890 and its registries).
_NEVER_PUBLIC = _networks(
    "192.0.0.0/24",  # IETF protocol assignments
    "192.88.99.0/24",  # 6to4 relays, deprecated (RFC 7526)
    "100.64.0.0/10",  # shared address space behind carrier NAT
    "fec0::/10",  # site-local, deprecated
    "3fff::/20",  # documentation (RFC 9637)
    "100::/64",  # discard only
    "5f00::/16",  # segment routing
)
# Metadata services of clouds, which give out credentials. The usual address, 169.254.169.254, is link-local; these are not.
_METADATA = _networks(
    "100.100.100.200",  # Alibaba Cloud
    "168.63.129.16",  # Azure's WireServer, which has a public address
    "192.0.0.192",  # Oracle Cloud
    "fd00:42::/64",  # Scaleway: ::42
    "fd00:a9fe:a9fe::/64",  # Akamai (Linode): ::1
    "fd00:ec2::/64",  # AWS: ::254, and others for its containers
    "fd20:ce::/64",  # Google Cloud: ::254
)
# A translator maps this network to IPv4 addresses, private ones too. Only its owner knows how (RFC 8215).
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")
# RFC 5214, 6.1: the upper half of an interface identifier with an IPv4 address. The second value marks a global address.
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})


class AddressRefused(OSError):
    """The policy blocks an address.

    aiohttp shows its `strerror`, and keeps it as `os_error`.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(errno.EACCES, detail)

    def __str__(self) -> str:
        return str(self.strerror)


def _wrapped(address: Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses for which an IPv6 address is only another form.

    Mapped, compatible, NAT64 (RFC 6052), 6to4, Teredo.
    """
    if isinstance(address, IPv4Address):
        return ()
    if address.teredo:
        return address.teredo  # server and client: packets go to either
    if inner := address.ipv4_mapped or address.sixtofour:
        return (inner,)
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return (_lowest(address),)
    return ()


def _carried(address: Address) -> tuple[IPv4Address, ...]:
    """Return all IPv4 addresses inside an IPv6 one: those that it wraps, and that of ISATAP.

    The prefix of an ISATAP address has a meaning of its own.
    """
    if isinstance(address, IPv6Address) and (int(address) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return (*_wrapped(address), _lowest(address))
    return _wrapped(address)


def _lowest(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def public(address: Address) -> bool:
    """Return whether an address may be a public server: global, unicast, and so all it wraps."""
    if not all(public(inner) for inner in _carried(address)):
        return False
    if _wrapped(address):
        return True
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    return not (_never_a_server(address) or any(address in network for network in _NEVER_PUBLIC))


def _never_a_server(address: Address) -> bool:
    """Return whether no server to crawl can have this address, private networks included."""
    if address.is_link_local or address.is_multicast or address.is_unspecified or address in _LOCAL_NAT64:
        return True
    return any(address in network for network in _METADATA)


def _denied(address: Address, policy: FetchPolicy) -> bool:
    return any(form in network for form in (address, *_carried(address)) for network in policy.denied)


def permitted(address: Address, policy: FetchPolicy) -> bool:
    """Return whether the policy permits an address.

    Denied networks come first, then allowed ones, then whether the address is public.
    """
    carried = _carried(address)
    if _denied(address, policy):
        return False
    if any(address in network for network in policy.allowed):
        return True
    if not policy.allow_private:
        return public(address)
    # A private network has servers at their own addresses. `allow_private` alone must not permit a redirect to a metadata service,
    # or to a private address in another form.
    return not _never_a_server(address) and all(public(inner) for inner in carried)


def blocked_message(hosts: Sequence[str], policy: FetchPolicy) -> str:
    """Say that the policy blocks these addresses, and which option permits them."""
    names = ", ".join(hosts)[:_LONGEST_HOSTS]
    are, they, them = ("is", "it is", "it") if len(hosts) == 1 else ("are", "they are", "them")
    addresses = [address for host in hosts if (address := ip_literal(host.partition("%")[0])) is not None]
    if any(_denied(address, policy) for address in addresses):
        return f"{names} {are} blocked by FetchPolicy.denied_networks"
    with_private = replace(policy, allow_private=True)
    if not all(permitted(address, with_private) for address in addresses):
        return f"{names} {are} blocked; only FetchPolicy.allowed_networks can permit {them}"
    options = "FetchPolicy.allow_private or allowed_networks"
    return f"{names} {are} not public, so {they} blocked; use {options} to permit {them}"


# Tells a transport why its connection failed: aiohttp merges several errors into one and loses their type.
_refused: ContextVar[list[str] | None] = ContextVar("refused", default=None)


@contextmanager
def within(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Set a variable of the context inside the block."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def collect_refused() -> AbstractContextManager[list[str]]:
    """Collect the addresses that are blocked inside the block."""
    return within(_refused, [])


# Set while connecting to the proxy of the policy, whose address the user chose.
_to_proxy: ContextVar[bool] = ContextVar("to_proxy", default=False)


def connecting_to_proxy() -> AbstractContextManager[object]:
    """Permit private addresses inside the block, for the policy's own proxy.

    A denied network stays blocked.
    """
    return within(_to_proxy, value=True)


def ip_literal(host: str) -> Address | None:
    """Return the address of a host in any form, with or without brackets; None for a name."""
    with suppress(ValueError):
        return ip_address(host.strip("[]").partition("%25")[0])
    try:
        return ip_address(parse_host(host, special=True))
    except (InvalidPart, ValueError):
        return None


class AddressGuard:
    """A socket factory for aiohttp's connector.

    It sees each real address before a connection is made. A resolver never sees IP literals, and may return another
    address later (DNS rebinding). Here there is no such gap.
    """

    def __init__(self, policy: FetchPolicy) -> None:
        self._policy = policy
        self._for_proxy = replace(policy, allow_private=True)

    def __call__(self, addr_info: tuple[Any, ...]) -> socket.socket:
        """Return a socket. Raises AddressRefused before any socket exists."""
        family, kind, protocol, _, sockaddr = addr_info
        host = str(sockaddr[0])
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            raise self._refusal(host, f"{host} is blocked: it is not an IP address") from None
        if not permitted(address, self._for_proxy if _to_proxy.get() else self._policy):
            raise self._refusal(host, blocked_message([host], self._policy))
        return socket.socket(family, kind, protocol)

    def check(self, host: str) -> None:
        """Raise AddressRefused if the host is an address that the policy blocks.

        For hosts to which another program connects, such as a proxy.
        """
        address = ip_literal(host)
        if address is not None and not permitted(address, self._policy):
            raise self._refusal(str(address), blocked_message([str(address)], self._policy))

    def _refusal(self, host: str, why: str) -> AddressRefused:
        seen = _refused.get()
        if seen is not None:
            seen.append(host)
        return AddressRefused(why)


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
        InvalidOption: if `policy` is no FetchPolicy, `socket_factory` is given, or `resolver` is invalid.
    """
    if policy is not None:
        instance("guarded_connector: policy", policy, FetchPolicy, "a FetchPolicy")
    # Imported here, so that `import polite` loads no HTTP client.
    connector: aiohttp.TCPConnector = import_module("polite.transports.connection_pool").GuardedConnector(
        policy or FetchPolicy(), **options
    )
    return connector
