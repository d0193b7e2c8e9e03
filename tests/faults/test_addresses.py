"""Sixty blocked addresses, by each way that leads to them: refused, and no socket is opened."""

import socket
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, ip_address
from types import SimpleNamespace

import aiohttp
import pytest

import polite
from polite.robots.reason import Reason
from polite.robots.result import Unreachable
from polite.testing import scripted_server
from polite.transports.address_guard import guarded_connector, public
from polite.transports.resolver import Resolver
from tests.faults.names import AAAA, A, telling
from tests.faults.stage import answered, ok

# By the registries of special addresses (RFC 6890).
V4 = """
    0.0.0.0 0.0.0.1 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.2 127.1.2.3
    127.255.255.254 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1
    192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7
    203.0.113.9 224.0.0.1 233.252.0.1 239.255.255.250 240.0.0.1 255.255.255.255
"""
V6 = """
    :: ::1 ::7f00:1 ::ffff:127.0.0.2 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0.0.0.0
    64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::a00:1 64:ff9b:1::1 100::1 2001::1 2001:2::1 2001:db8::1
    2001:0:4136:e378:8000:63bf:f5ff:fffe 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe::1 2002:c0a8:101::1
    3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd12:3456:789a::1 fe80::1 fe80::a9fe:a9fe febf::1 fec0::1
    ff02::1 ff0e::1
"""
BAD = [ip_address(each) for each in (V4 + V6).split()]
# Where the honest server of these tests is; nothing else of this machine may be dialled.
HOME = ["127.0.0.1/32"]


def spellings(address: IPv4Address) -> list[str]:
    """The ways in which browsers read an IPv4 address, and people hide one."""
    a, b, c, d = address.packed
    return [
        str(int(address)),
        hex(int(address)),
        f"0{int(address):o}",
        f"{a}.{b}.{c << 8 | d}",
        f"{a}.{b << 16 | c << 8 | d}",
        f"0x{a:x}.0{b:o}.{c}.0X{d:X}",
        f"{address}.",
        str(address).replace(".", "%2e"),
        str(address).replace(".", "。"),
        str(address).translate({ord(digit): ord("０") + int(digit) for digit in "0123456789"}),
    ]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    sockets: list[object] = []

    def make(*arguments: object) -> socket.socket:
        sockets.append(arguments)
        return socket.socket(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("polite.transports.address_guard.socket", SimpleNamespace(socket=make))
    return sockets


@asynccontextmanager
async def gated(nameserver="127.0.0.1:1"):
    async with polite.open_gate(
        "FaultBot/1.0",
        pacing=polite.PacingPolicy(min_delay=0),
        fetching=polite.FetchPolicy(timeout=20.0, allowed_networks=HOME, nameservers=[nameserver]),
    ) as gate:
        yield gate


async def refused(gate: polite.Gate, url: str) -> bool:
    access = (await gate.explain(url)).snapshot.access
    return isinstance(access, Unreachable) and access.reason is Reason.ADDRESS_REFUSED


def host(address: object) -> str:
    return f"[{address}]" if ":" in str(address) else str(address)


def records(address: object, *before: str) -> dict[int, list[tuple[str, ...]]]:
    """What a nameserver says about a name that leads to the address: first, when it is asked first, to `before`."""
    kind, other = (AAAA, A) if ":" in str(address) else (A, AAAA)
    return {kind: [*((each,) for each in before), (str(address),)], other: [()]}


def names(*before):
    return {
        (f"n{number}.test", kind): said
        for number, address in enumerate(BAD)
        for kind, said in records(address, *(each(address) for each in before)).items()
    }


def test_there_are_about_sixty() -> None:
    assert len(set(BAD)) >= 60
    assert not any(map(public, BAD))


def as_they_are() -> list[str]:
    return [host(each) for each in BAD]


def oddly_spelt() -> list[str]:
    odd = [spelling for each in BAD if each.version == 4 for spelling in spellings(each)]
    assert len(odd) >= 290
    return odd


def named() -> list[str]:
    return [f"n{number}.test" for number in range(len(BAD))]


@pytest.mark.parametrize(
    ("way", "scheme"),
    [
        (as_they_are, "https"),
        *((way, each) for way in (as_they_are, oddly_spelt, named) for each in ("http", "ftp")),
    ],
)
async def test_an_address_or_a_name_that_leads_to_one(made, way, scheme):
    async with telling(names()) as nameserver, gated(nameserver) as gate:
        let_through = [each for each in way() if not await refused(gate, f"{scheme}://{each}/")]
    assert (let_through, made) == ([], [])


def elsewhere(address: object) -> str:
    return "2606:4700::1111" if ":" in str(address) else "1.1.1.1"


async def test_a_name_that_resolved_to_another_address_before(made: list[object]) -> None:
    async with telling(names(elsewhere)) as nameserver, gated(nameserver) as gate:
        resolver = Resolver((nameserver,))
        looked = [(await resolver.resolve(f"n{n}.test"))[0]["host"] for n in range(len(BAD))]
        let_through = [each for n, each in enumerate(BAD) if not await refused(gate, f"http://n{n}.test/")]
        await resolver.close()
    assert all(public(ip_address(each)) for each in looked)
    assert (let_through, made) == ([], [])


@pytest.mark.parametrize("scheme", ["http", "ftp"])
async def test_a_redirect_to_one(made: list[object], scheme: str) -> None:
    let_through = []
    for each in BAD:
        location = f"Location: {scheme}://{host(each)}/robots.txt".encode()
        async with scripted_server(answered(b"302 Found", location)) as server, gated() as gate:
            if not await refused(gate, server.url("/")):
                let_through.append(each)
    assert (let_through, len(made)) == ([], len(BAD))


async def test_a_sitemap_that_a_robots_txt_names(made: list[object]) -> None:
    urls = [f"http://{host(each)}/sitemap.xml" for each in BAD]
    body = b"User-agent: *\n" + b"".join(f"Sitemap: {url}\n".encode() for url in urls)

    async with scripted_server(ok(body)) as server, gated() as gate:
        explanation = await gate.explain(server.url("/"))
        sitemaps = polite.parse(explanation.snapshot.access.body).sitemaps  # type: ignore[union-attr]
        let_through = [url for url in sitemaps if not await refused(gate, url)]

    assert (list(sitemaps), let_through) == (urls, [])
    assert len(made) == 1


async def said(session: aiohttp.ClientSession, url: str) -> str:
    """Why the session does not get the page; nothing when it does."""
    try:
        await session.get(url)
    except aiohttp.ClientConnectorError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("route", ["address", "name"])
async def test_the_crawlers_own_session_is_led_to_none(made: list[object], route: str) -> None:
    let_through = []

    async with telling(names()) as nameserver:
        connector = guarded_connector(polite.FetchPolicy(nameservers=[nameserver]), force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            for number, each in enumerate(BAD):
                url = f"http://{host(each) if route == 'address' else f'n{number}.test'}/"
                if " blocked; " not in await said(session, url):
                    let_through.append(each)

    assert (let_through, made) == ([], [])


async def test_the_crawlers_own_session_is_redirected_to_none(made: list[object]) -> None:
    let_through = []
    connector = guarded_connector(polite.FetchPolicy(allowed_networks=HOME), force_close=True)

    async with aiohttp.ClientSession(connector=connector) as session:
        for each in BAD:
            location = f"Location: http://{host(each)}/".encode()
            async with scripted_server(answered(b"302 Found", location)) as server:
                if " blocked; " not in await said(session, server.url("/")):
                    let_through.append(each)

    assert (let_through, len(made)) == ([], len(BAD))
