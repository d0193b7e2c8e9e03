"""A nameserver on loopback that knows the demo's hosts and no others; what it does not know does not exist."""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address

_HEADER = struct.Struct("!HHHHHH")
_TYPE_A, _CLASS_IN = 1, 1
_NXDOMAIN = 3
# Response, authoritative, recursion desired and available.
_FLAGS = 0x8580


class _Names(asyncio.DatagramProtocol):
    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = {name.lower(): IPv4Address(address).packed for name, address in addresses.items()}
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._answer(data)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)

    def _answer(self, query: bytes) -> bytes | None:
        """RFC 1035, 4.1: the question back, and one A record when there is one."""
        labels, end = _question(query)
        if end + 4 > len(query):
            return None
        kind, _ = struct.unpack_from("!HH", query, end)
        question = query[_HEADER.size : end + 4]
        address = self._addresses.get(".".join(labels).lower())
        found = address is not None and kind == _TYPE_A
        flags = _FLAGS if address is not None else _FLAGS | _NXDOMAIN
        head = _HEADER.pack(int.from_bytes(query[:2], "big"), flags, 1, int(found), 0, 0)
        record = (
            struct.pack("!HHHIH", 0xC00C, _TYPE_A, _CLASS_IN, 60, 4) + address if found and address else b""
        )
        return head + question + record


def _question(query: bytes) -> tuple[list[str], int]:
    """The labels of the first question's name, and where it ends."""
    labels: list[str] = []
    at = _HEADER.size
    while at < len(query) and query[at]:
        length = query[at]
        labels.append(query[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    return labels, at + 1


@asynccontextmanager
async def nameserver(addresses: Mapping[str, str]) -> AsyncIterator[str]:
    """Answer for these names while the block lasts; gives "127.0.0.1:port", as FetchPolicy.nameservers takes it."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Names(addresses), local_addr=("127.0.0.1", 0))
    try:
        host, port = transport.get_extra_info("sockname")[:2]
        yield f"{host}:{port}"
    finally:
        transport.close()
