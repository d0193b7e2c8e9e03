"""The demo's DNS server: known names, unknown names, and packets that it ignores."""

import asyncio
import socket
import struct

import pytest

from docs.examples.demo.dns_server import dns_server, response_to
from polite.transports.resolver import NameNotResolved, Resolver

ADDRESSES = {"a.test": "127.31.0.1"}
A, AAAA, IN, CHAOS = 1, 28, 1, 3


def _query(name="a.test", kind=A, of_class=IN, *, flags=0x0100, questions=1):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return (
        struct.pack("!6H", 7, flags, questions, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", kind, of_class)
    )


def _read(answer):
    """Number, status code, count of answers, and the last four octets."""
    number, flags, _, answers, _, _ = struct.unpack_from("!6H", answer)
    return number, flags & 0xF, answers, answer[-4:]


@pytest.mark.parametrize("name", ["a.test", "A.Test"])
def test_a_known_name_has_its_address(name):
    answer = response_to(_query(name), ADDRESSES)

    assert _read(answer) == (7, 0, 1, b"\x7f\x1f\x00\x01")
    assert answer[12:].startswith(_query(name)[12:])


@pytest.mark.parametrize(("kind", "of_class"), [(AAAA, IN), (A, CHAOS)])
def test_a_known_name_has_no_other_data(kind, of_class):
    assert _read(response_to(_query(kind=kind, of_class=of_class), ADDRESSES))[:3] == (7, 0, 0)


@pytest.mark.parametrize("name", ["b.test", "test", "x.a.test"])
def test_an_unknown_name_does_not_exist(name):
    assert _read(response_to(_query(name), ADDRESSES))[:3] == (7, 3, 0)


def test_what_is_no_single_question_is_not_answered():
    whole = _query()
    cut_short = [whole[:end] for end in range(len(whole))]
    odd = [
        whole[:12] + b"\xc0\x0c" + bytes(8),
        whole[:12] + b"\x3fshort",
        _query(questions=0),
        _query(questions=2),
        _query(flags=0x8180),
    ]

    assert {response_to(packet, ADDRESSES) for packet in cut_short + odd} == {None}


async def test_a_resolver_finds_the_names_and_no_others():
    async with dns_server(ADDRESSES) as address:
        resolver = Resolver((address,))
        found = await resolver.resolve("a.test", 80)
        with pytest.raises(NameNotResolved):
            await resolver.resolve("b.test", 80)
        await resolver.close()

    assert [each["host"] for each in found] == ["127.31.0.1"]


async def test_rubbish_does_not_stop_the_server():
    loop = asyncio.get_running_loop()
    async with dns_server(ADDRESSES) as address:
        host, _, port = address.partition(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.setblocking(False)
            await loop.sock_connect(asking, (host, int(port)))
            asking.send(b"rubbish")
            asking.send(_query())
            answer = await loop.sock_recv(asking, 512)

    assert _read(answer)[:3] == (7, 0, 1)
