"""The addresses that are never dialled unless the user says so, checked on the real address of each connection."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from polite.robots.policy import FetchPolicy
from polite.url.host import parse_host
from polite.url.refusal import Refusal

Address = IPv4Address | IPv6Address

# `is_global` counts these as public, though they are not, or lead to addresses that are not (RFC 6890 and its registries).
_NEVER_PUBLIC = tuple(
    map(
        ip_network,
        (
            "192.0.0.0/24",  # IETF protocol assignments
            "192.88.99.0/24",  # 6to4 relays, deprecated (RFC 7526)
            "100.64.0.0/10",  # shared address space behind carrier NAT
            "fec0::/10",  # site-local, deprecated
            "3fff::/20",  # documentation (RFC 9637)
            "100::/64",  # discard only
            "5f00::/16",  # segment routing
            "64:ff9b:1::/48",  # local-use NAT64
        ),
    )
)
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")


class AddressRefused(OSError):
    """An address that the policy does not let us dial; aiohttp shows its `strerror`, and keeps it as `os_error`."""

    def __init__(self, detail: str) -> None:
        super().__init__(errno.EACCES, detail)

    def __str__(self) -> str:
        return str(self.strerror)


def _carried(address: Address) -> IPv4Address | None:
    """The IPv4 address inside an IPv6 one: mapped, compatible, NAT64 (RFC 6052), 6to4, Teredo."""
    if isinstance(address, IPv4Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def public(address: Address) -> bool:
    """Whether an address may be someone's public server: global, unicast, and carrying no other that is not."""
    inner = _carried(address)
    if inner is not None:
        return public(inner)
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    return not any(address in network for network in _NEVER_PUBLIC)


def permitted(address: Address, policy: FetchPolicy) -> bool:
    """The policy's word on an address: denied networks first, then allowed ones, then whether it is public."""
    forms = [form for form in (address, _carried(address)) if form is not None]
    if any(form in network for form in forms for network in policy.denied):
        return False
    if any(address in network for network in policy.allowed):
        return True
    if policy.allow_private:
        # A private network has servers; these have none that a crawler is meant for. The clouds' metadata service is
        # link-local (169.254.169.254): a redirect there must not be followed by saying "private" alone.
        return not any(form.is_link_local or form.is_multicast or form.is_unspecified for form in forms)
    return public(address)


# A transport asks here afterwards why its connection failed: several refusals at once lose their type on the way up.
_refused: ContextVar[list[str] | None] = ContextVar("refused", default=None)


@contextmanager
def refusals() -> Iterator[list[str]]:
    """Collects the addresses that were refused inside the block."""
    seen: list[str] = []
    token = _refused.set(seen)
    try:
        yield seen
    finally:
        _refused.reset(token)


# Set while the connection is one to the proxy that the policy names: its address was chosen by the user.
_to_proxy: ContextVar[bool] = ContextVar("to_proxy", default=False)


@contextmanager
def dialling_the_proxy() -> Iterator[None]:
    """Inside the block private addresses may be dialled: it is the policy's own proxy; a denied network still is not."""
    token = _to_proxy.set(True)
    try:
        yield
    finally:
        _to_proxy.reset(token)


def literal(host: str) -> Address | None:
    """The address that a host stands for when it is one, in whatever spelling, brackets or not; None for a name."""
    with suppress(ValueError):
        return ip_address(host.strip("[]").partition("%25")[0])
    try:
        return ip_address(parse_host(host, special=True))
    except (Refusal, ValueError):
        return None


class AddressGuard:
    """A socket factory for aiohttp's connector: it sees each real address just before the connection is made.

    A resolver never sees IP literals and can be answered differently later (DNS rebinding); here there is no such gap.
    """

    def __init__(self, policy: FetchPolicy) -> None:
        self._policy = policy
        self._for_proxy = replace(policy, allow_private=True)

    def __call__(self, addr_info: tuple[Any, ...]) -> socket.socket:
        """Raises AddressRefused before any socket exists."""
        family, kind, protocol, _, sockaddr = addr_info
        host = str(sockaddr[0])
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            raise self._refusal(host, "it is no IP address") from None
        if not permitted(address, self._for_proxy if _to_proxy.get() else self._policy):
            raise self._refusal(host, "see FetchPolicy.allow_private and allowed_networks")
        return socket.socket(family, kind, protocol)

    def check(self, host: str) -> None:
        """For a host that somebody else will dial: raises AddressRefused when it is an address that we would not."""
        address = literal(host)
        if address is not None and not permitted(address, self._policy):
            raise self._refusal(str(address), "see FetchPolicy.allow_private and allowed_networks")

    def _refusal(self, host: str, why: str) -> AddressRefused:
        seen = _refused.get()
        if seen is not None:
            seen.append(host)
        return AddressRefused(f"{host} is not dialled: {why}")
