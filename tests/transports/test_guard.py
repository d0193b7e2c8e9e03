"""Which addresses are dialled, and which never are."""

import socket
from ipaddress import ip_address

import pytest

from polite.robots.policy import FetchPolicy
from polite.transports.guard import AddressGuard, AddressRefused, literal, permitted, public, refusals

NOT_PUBLIC = [
    *(
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
    ),
    *("192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
    *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *(
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd12:3456::1",
        "ff02::1",
        "fec0::1",
        "2001:db8::1",
        "3fff::1",
        "100::1",
    ),
    *("5f00::1", "64:ff9b:1::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1"),
    *("64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:c0a8:101::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
]
PUBLIC = [
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700::1111",
    "2a00:1450:4001:81b::200e",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not permitted(ip_address(address), FetchPolicy())


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_dialled(address: str) -> None:
    assert public(ip_address(address))


def test_a_teredo_address_counts_as_the_client_it_carries() -> None:
    assert not public(ip_address("2001:0:4136:e378:8000:63bf:f5ff:fffe"))  # carries 10.0.0.1


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "::1", "fd12::1"])
def test_private_addresses_are_dialled_when_the_policy_says_so(address: str) -> None:
    assert permitted(ip_address(address), FetchPolicy(allow_private=True))


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "fe80::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
    ],
)
def test_a_metadata_service_is_not_what_private_means(address: str) -> None:
    assert not permitted(ip_address(address), FetchPolicy(allow_private=True))
    assert permitted(ip_address(address), FetchPolicy(allowed_networks=[address]))


def test_an_allowed_network_opens_that_network_only() -> None:
    policy = FetchPolicy(allowed_networks=["127.0.0.0/8"])

    assert permitted(ip_address("127.9.9.9"), policy)
    assert not permitted(ip_address("10.0.0.1"), policy)


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::1",
        "2001:0:4136:e378:8000:63bf:fefe:fefe",
    ],
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

    monkeypatch.setattr(socket, "socket", no_socket)

    with refusals() as seen, pytest.raises(AddressRefused, match="allow_private"):
        AddressGuard(FetchPolicy())(info("169.254.169.254"))
    assert seen == ["169.254.169.254"]


def test_a_scope_id_does_not_hide_an_address() -> None:
    with pytest.raises(AddressRefused):
        AddressGuard(FetchPolicy())(info("fe80::1%eth0"))


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(AddressRefused, match="no IP address"):
        AddressGuard(FetchPolicy(allow_private=True))(info("localhost"))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("0x7f.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("010.0.0.1", "8.0.0.1"),
        ("[::1]", "::1"),
        ("::ffff:1.1.1.1", "::ffff:1.1.1.1"),
        ("fe80::1%25eth0", "fe80::1"),
    ],
)
def test_a_host_that_is_an_address_is_known_in_each_spelling(host: str, address: str) -> None:
    assert literal(host) == ip_address(address)


@pytest.mark.parametrize("host", ["example.com", "1.1.1.1.example.com", "", "a b", "256.256.256.256"])
def test_a_host_that_is_a_name_or_nothing_is_no_address(host: str) -> None:
    assert literal(host) is None


def test_the_guard_makes_the_socket_of_a_permitted_address() -> None:
    with AddressGuard(FetchPolicy(allow_private=True))(info("127.0.0.1")) as made:
        assert made.family is socket.AF_INET
