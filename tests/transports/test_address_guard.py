"""Which addresses are permitted, and which are always blocked; and the guard for the crawler's own sessions."""

import socket
from ipaddress import ip_address

import aiohttp
import pytest

import polite
from polite.origin import Target
from polite.robots.exchange import Ask, Failed, Reply
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.testing import scripted_server
from polite.transports.address_guard import (
    AddressGuard,
    AddressRefused,
    collect_refused,
    guarded_connector,
    ip_literal,
    permitted,
    public,
)
from polite.transports.connection_pool import ProxyRefused
from polite.transports.http import HttpTransport

NOT_PUBLIC = """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1
    192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1
    224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16
    :: ::1 fe80::1 fc00::1 fd12:3456::1 ff02::1 fec0::1 2001:db8::1 3fff::1 100::1 5f00::1
    64:ff9b:1::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe
    2606:4700::5efe:a00:1 2606:4700::200:5efe:a9fe:a9fe fd12::5efe:101:101 fe80::5efe:101:101
    2002:7f00:1:: 2002:c0a8:101::1 2001:0:a00:1::fefe:fefe
    2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:0:4136:e378:8000:63bf:f5ff:fffe
""".split()
PUBLIC = """
    1.1.1.1 93.184.216.34 2606:4700::1111 2a00:1450:4001:81b::200e ::ffff:1.1.1.1 64:ff9b::101:101
    2606:4700::5efe:101:101 2606:4700::200:5efe:101:101 2606:4700::100:5efe:a00:1
""".split()
# Metadata services that are not link-local, and private addresses inside an IPv6 one.
METADATA = ["100.100.100.200", "168.63.129.16", "192.0.0.192"]
METADATA_IPV6 = ["fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "fd00:a9fe:a9fe::1"]
NO_SERVERS = ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1"]
CARRYING = {
    "mapped": "::ffff:{}",
    "compatible": "::{}",
    "NAT64": "64:ff9b::{}",
    "ISATAP": "2606:4700::5efe:{}",
    "private ISATAP": "fd12::5efe:{}",
    "local NAT64": "64:ff9b:1::{}",
    "unique ISATAP": "2606:4700::200:5efe:{}",
    "link-local ISATAP": "fe80::5efe:{}",
}
WITH_PRIVATE = FetchPolicy(allow_private=True)


def sixtofour(address: str) -> str:
    return str(ip_address((0x2002 << 112) | (int(ip_address(address)) << 80) | 1))


def teredo(client: str, server: str = "65.54.227.120") -> str:
    upper = (0x2001_0000 << 96) | (int(ip_address(server)) << 64) | (0x8000_63BF << 32)
    return str(ip_address(upper | (int(ip_address(client)) ^ 0xFFFF_FFFF)))


@pytest.mark.parametrize("address", [*NOT_PUBLIC, *PUBLIC])
def test_an_address_is_permitted_if_it_is_public(address: str) -> None:
    assert permitted(ip_address(address), FetchPolicy()) is public(ip_address(address)) is (address in PUBLIC)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "::1", "fd12::1"])
def test_private_addresses_are_permitted_when_the_policy_says_so(address: str) -> None:
    assert permitted(ip_address(address), WITH_PRIVATE)


@pytest.mark.parametrize("address", [*METADATA, *METADATA_IPV6, *NO_SERVERS])
def test_no_metadata_service_is_what_private_means(address: str) -> None:
    assert not permitted(ip_address(address), FetchPolicy())
    assert not permitted(ip_address(address), WITH_PRIVATE)
    assert permitted(ip_address(address), FetchPolicy(allowed_networks=[address]))


@pytest.mark.parametrize("inner", ["10.0.0.1", "127.0.0.1", "192.168.1.1", "169.254.169.254", *METADATA])
def test_a_private_address_inside_another_is_not_what_private_means(inner: str) -> None:
    outer = [form.format(inner) for form in CARRYING.values()] + [
        sixtofour(inner),
        teredo(inner),
        teredo("1.1.1.1", server=inner),
    ]

    for address in outer:
        assert not permitted(ip_address(address), FetchPolicy()), address
        assert not permitted(ip_address(address), WITH_PRIVATE), address
        assert permitted(ip_address(address), FetchPolicy(allowed_networks=[address])), address


@pytest.mark.parametrize("kind", [*CARRYING][:5])
def test_a_public_address_inside_another_is_permitted_with_private_ones(kind: str) -> None:
    assert permitted(ip_address(CARRYING[kind].format("1.1.1.1")), WITH_PRIVATE)


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", sixtofour("1.1.1.1"), teredo("1.1.1.1"), "2606:4700::5efe:1.1.1.1", "64:ff9b::101:101"],
)
def test_a_denied_network_wins_in_every_spelling(address: str) -> None:
    policy = FetchPolicy(allow_private=True, allowed_networks=["0.0.0.0/0"], denied_networks=["1.1.1.0/24"])
    assert not permitted(ip_address(address), policy)


def info(host: str) -> tuple[object, ...]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return (family, socket.SOCK_STREAM, 0, "", (host, 80))


def test_the_guard_refuses_before_any_socket_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_socket(*arguments: object) -> None:
        raise AssertionError("a socket was made")

    with AddressGuard(WITH_PRIVATE)(info("127.0.0.1")) as made:
        assert made.family is socket.AF_INET
    monkeypatch.setattr(socket, "socket", no_socket)

    with collect_refused() as seen, pytest.raises(AddressRefused, match="allowed_networks"):
        AddressGuard(FetchPolicy())(info("169.254.169.254"))
    assert seen == ["169.254.169.254"]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        *(("0x7f.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("010.0.0.1", "8.0.0.1")),
        *(("[::1]", "::1"), ("::ffff:1.1.1.1", "::ffff:1.1.1.1"), ("fe80::1%25eth0", "fe80::1")),
        *((name, None) for name in ("example.com", "1.1.1.1.example.com", "", "a b", "256.256.256.256")),
    ],
)
def test_a_host_that_is_an_address_is_known_in_each_spelling(host: str, address: str | None) -> None:
    assert ip_literal(host) == (None if address is None else ip_address(address))


# The crawler's own sessions: where they connect, which proxy they use, and what is left to aiohttp.

HOME = {"allowed_networks": ["127.0.0.0/8"]}
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


async def test_by_default_private_addresses_are_blocked() -> None:
    async with (
        scripted_server(PAGE) as server,
        aiohttp.ClientSession(connector=guarded_connector()) as session,
    ):
        with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
            await session.get(server.url("/"))
    assert server.hits == 0


@pytest.mark.parametrize("configured", [None, "http://127.0.0.1:3128"])
async def test_another_proxy_than_that_of_the_policy_is_refused_with_the_reason(configured, monkeypatch):
    connector = guarded_connector(polite.FetchPolicy(**HOME, proxy=configured))

    async with scripted_server(PAGE) as proxy, aiohttp.ClientSession(connector=connector) as session:
        named = proxy.url("").replace("//", "//user:s3cret@")
        with pytest.raises(ProxyRefused, match=r"FetchPolicy\.proxy|FetchPolicy: proxy") as refused:
            await session.get("http://example.com/", proxy=named)
        monkeypatch.setenv("http_proxy", named)
        session._trust_env = True
        with pytest.raises(ProxyRefused):
            await session.get("http://example.com/")

    assert refused.value.reason is Reason.PROXY_REFUSED
    assert "s3cret" not in str(refused.value)
    assert proxy.hits == 0


@pytest.mark.parametrize("host", ["169.254.169.254", "0x7f.1", "[::ffff:10.0.0.1]"])
async def test_a_blocked_address_is_requested_neither_from_a_proxy_nor_without_it(host: str) -> None:
    async with scripted_server(PAGE) as proxy:
        connector = guarded_connector(polite.FetchPolicy(proxy=proxy.url("")))
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(aiohttp.ClientConnectorError, match="allow_private|allowed_networks"):
                await session.get(f"http://{host}/", proxy=proxy.url(""))
            with pytest.raises(aiohttp.ClientConnectorError, match="allow_private"):
                await session.get(proxy.url("/"))

    assert proxy.hits == 0


async def asked_through(proxy: str, url: str) -> Reply | Failed:
    transport = HttpTransport("TestBot/1.0", polite.FetchPolicy(proxy=proxy))
    try:
        return await transport.get(Ask(Target.of(url)))
    finally:
        await transport.close()


@pytest.mark.parametrize("status", [b"407 No", b"502 No", b"403 No"])
async def test_a_refusal_or_absence_of_the_proxy_is_not_a_response_of_the_site(status: bytes) -> None:
    async with scripted_server(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n") as proxy:
        refused = await asked_through(proxy.url(""), "https://example.com/robots.txt")
    gone = await asked_through(proxy.url(""), "http://example.com/robots.txt")
    for failed in (refused, gone):
        assert isinstance(failed, Failed)
        assert failed.reason is Reason.PROXY_FAILED


async def test_nothing_goes_past_a_proxy_over_ftp() -> None:
    fetching = polite.FetchPolicy(proxy="http://127.0.0.1:9")
    async with polite.open_gate("TestBot/1.0", fetching=fetching) as gate:
        decision = await gate.check("ftp://127.0.0.1:9/")
    assert decision.cause is Reason.SCHEME_UNKNOWN


@pytest.mark.parametrize("proxy", ["127.0.0.1:3128", "socks5://127.0.0.1:1080", "", "http://", 7])
def test_what_is_no_proxy_is_refused_by_name(proxy: object) -> None:
    with pytest.raises(polite.InvalidOption, match=r"FetchPolicy\.proxy|FetchPolicy: proxy"):
        polite.FetchPolicy(proxy=proxy)  # type: ignore[arg-type]


async def test_the_guard_cannot_be_replaced() -> None:
    with pytest.raises(polite.InvalidOption, match="socket_factory"):
        guarded_connector(socket_factory=lambda info: None)
