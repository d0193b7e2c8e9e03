"""Names to addresses: what nameservers return, why they fail, and hosts whose addresses the user names."""

import asyncio
import socket

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

import polite
from polite import FetchPolicy, InvalidOption, PacingPolicy, Reason, ScopeLimit, Scopes
from polite.testing import scripted_server
from polite.transports.resolver import NamedHosts, NameNotResolved, Resolver, named_resolver
from tests.faults.ftp import ftp
from tests.faults.names import AAAA, FORMERR, A, telling
from tests.support import now, scripted_gate

HOME = {"allowed_networks": ["127.0.0.0/8"]}
RULES = b"HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\nUser-agent: *\nDisallow: /private\n"


async def test_a_nameserver_that_does_not_understand_the_query_gives_a_bad_answer() -> None:
    # Each other failure is a row of the fault matrix.
    async with telling({"site.test": FORMERR}) as nameserver:
        resolver = named_resolver(FetchPolicy(timeout=10.0, nameservers=[nameserver]), None)
        with pytest.raises(NameNotResolved) as error:
            await resolver.resolve("site.test")
        await resolver.close()
    assert error.value.reason is Reason.DNS_BAD_ANSWER


async def test_all_addresses_of_both_kinds_are_found_with_the_time_for_which_they_are_good() -> None:
    names = {("site.test", A): ("127.0.0.1", "127.0.0.2"), ("site.test", AAAA): ("::1",)}

    async with telling(names) as nameserver:
        resolver = Resolver((nameserver,))
        found = await resolver.resolve("site.test", 80)
        addresses, good_s = await resolver.addresses("site.test")
        await resolver.close()
        await resolver.close()

    assert {each["host"] for each in found} == set(addresses) == {"127.0.0.1", "127.0.0.2", "::1"}
    assert ({each["port"] for each in found}, good_s) == ({80}, 60.0)


class Own(AbstractResolver):
    def __init__(self, port: int | None = None) -> None:
        self.asked: list[str] = []
        self.closed, self._port = False, port

    async def resolve(self, host, port=0, family=socket.AF_INET):
        self.asked.append(host)
        return [
            ResolveResult(hostname=host, host="127.0.0.1", port=self._port or port, family=socket.AF_INET, proto=0, flags=0)
        ]  # fmt: skip

    async def close(self) -> None:
        self.closed = True


async def resolved(names, host, port, nameserver="127.0.0.1:1"):
    resolver = named_resolver(FetchPolicy(timeout=10.0, nameservers=[nameserver]), names)
    try:
        (found,) = await resolver.resolve(host, port)
    finally:
        await resolver.close()
    return found["host"], found["port"]


@pytest.mark.parametrize(
    ("names", "host", "port", "server"),
    [
        ({"example.com": "127.0.0.1"}, "example.com", 443, ("127.0.0.1", 443)),
        ({"example.com": "127.0.0.1:8443"}, "example.com", 443, ("127.0.0.1", 8443)),
        ({"example.com": "[::1]:8443"}, "example.com", 443, ("::1", 8443)),
        ({"example.com.": "127.0.0.1"}, "example.com", 443, ("127.0.0.1", 443)),
        ({"example.com": "127.0.0.1"}, "example.com.", 443, ("127.0.0.1", 443)),
        ({"bücher.example": "127.0.0.1"}, "xn--bcher-kva.example", 443, ("127.0.0.1", 443)),
        ({"example.com:80": "127.0.0.1", "example.com": "127.0.0.2"}, "example.com", 80, ("127.0.0.1", 80)),
        ({"example.com:80": "127.0.0.1", "example.com": "127.0.0.2"}, "example.com", 443, ("127.0.0.2", 443)),
    ],
)  # fmt: skip
async def test_a_host_has_the_address_that_the_user_named(names, host, port, server):
    assert await resolved(names, host, port) == server


@pytest.mark.parametrize(
    ("resolver", "message"),
    [
        ({"example.com": "localhost"}, "must have an IP address"),
        ({"example.com": "127.0.0.1:65536"}, "the port of"),
        ({"example.com": 5}, "must have an IP address"),
        ({"example.com:": "127.0.0.1"}, "the port of"),
        ({"http://me:secret@a.test:80/": "127.0.0.1"}, "'http://a.test:80/' must be a host, not a URL"),
        ({"*.test": "127.0.0.1"}, "has a wildcard"),
        ({"": "127.0.0.1"}, "neither"),
        ({5: "127.0.0.1"}, "must be a str"),
        ({"[::1]": "127.0.0.2"}, "is an address"),
        ({"example.com": "127.0.0.1", "Example.com": "127.0.0.2"}, "two addresses"),
        ("127.0.0.1", "must be a mapping"),
    ],
)
async def test_what_names_no_host_or_address_is_refused_when_the_gate_opens(resolver, message):
    with pytest.raises(InvalidOption, match=message):
        async with scripted_gate(resolver=resolver):
            pytest.fail("it opened")
    with pytest.raises(InvalidOption, match=message):
        polite.guarded_connector(resolver=resolver)


async def test_a_connector_needs_a_fetch_policy() -> None:
    with pytest.raises(InvalidOption, match="guarded_connector: policy must be a FetchPolicy"):
        polite.guarded_connector(polite.PacingPolicy())  # type: ignore[arg-type]


async def test_the_users_resolver_serves_robots_pages_and_ftp_and_stays_open() -> None:
    async with scripted_server(RULES) as server, scripted_server(ftp(), scheme="ftp", hears=b"") as files:
        own = Own(int(server.url("").rpartition(":")[2]))
        policy = FetchPolicy(**HOME)
        async with polite.open_gate("TestBot/1.0", fetching=policy, resolver=own) as gate:
            assert not await gate.check("http://example.com/private")
            own._port = int(files.url("").rpartition(":")[2])
            assert not await gate.check("ftp://files.test/private")
        connector = polite.guarded_connector(policy, resolver=own)
        own._port = int(server.url("").rpartition(":")[2])
        async with aiohttp.ClientSession(connector=connector) as session:
            await (await session.get("http://pages.test/")).read()

    assert own.asked == ["example.com", "files.test", "pages.test"]
    assert not own.closed


async def test_a_host_with_one_named_port_has_the_other_ports_addresses_too() -> None:
    async with telling({("a.test", A): ("127.0.0.9",)}) as nameserver:
        policy = FetchPolicy(nameservers=[nameserver])
        resolver = named_resolver(policy, {"a.test:80": "127.0.0.1", "b.test:80": "127.0.0.2"})
        assert isinstance(resolver, NamedHosts)
        found, _ = await resolver.addresses("a.test")
        # No nameserver knows it.
        alone, _ = await resolver.addresses("b.test")
        with pytest.raises(NameNotResolved):
            await resolver.addresses("c.test")
        await resolver.close()

    assert (found, alone) == (["127.0.0.1", "127.0.0.9"], ["127.0.0.2"])


@pytest.mark.virtual_time
async def test_a_resolver_of_the_users_that_never_ends_holds_no_request_for_ever() -> None:
    class Silent(Own):
        async def resolve(self, host, port=0, family=socket.AF_INET):
            await asyncio.sleep(1e6)
            return []

    pacing = PacingPolicy(scopes=Scopes(address=ScopeLimit(delay=3.0)), min_delay=1.0)
    async with scripted_gate(pacing=pacing, resolver=Silent()) as gate, gate.permit("http://a.test/"):
        assert now() < 100
