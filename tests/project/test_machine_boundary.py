"""The guard of the tests themselves: a test that tried to leave the machine would be refused."""

import socket

import aiodns
import pytest


def test_a_connection_beyond_loopback_is_refused() -> None:
    with socket.socket() as peer, pytest.raises(Exception, match="may not reach"):
        peer.connect(("192.0.2.1", 80))


def test_a_datagram_beyond_loopback_is_refused() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as peer, pytest.raises(Exception, match="may not reach"):
        peer.sendto(b"?", ("192.0.2.1", 53))


def test_a_name_is_not_resolved_by_the_system() -> None:
    with pytest.raises(Exception, match="may not reach"):
        socket.getaddrinfo("example.com", 80)


async def test_a_dns_query_to_the_systems_nameservers_is_refused() -> None:
    with pytest.raises(Exception, match="system's nameservers"):
        aiodns.DNSResolver()


async def test_a_dns_query_to_a_foreign_nameserver_is_refused() -> None:
    with pytest.raises(Exception, match="may not reach"):
        aiodns.DNSResolver(nameservers=["192.0.2.53"])


async def test_a_resolver_cannot_be_pointed_elsewhere_later() -> None:
    resolver = aiodns.DNSResolver(nameservers=["127.0.0.1:1"])

    with pytest.raises(Exception, match="may not reach"):
        resolver.nameservers = ["192.0.2.53"]

    await resolver.close()


def test_loopback_is_there() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as peer,
    ):
        assert peer.getpeername() == server.getsockname()
