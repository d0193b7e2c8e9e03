"""A nameserver on loopback that knows the demo's hosts and no others; what it does not know does not exist."""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from typing import cast

# RFC 1035, 4.1.1: id, flags, and how many questions, answers, authorities and additional records follow.
_HEADER = struct.Struct("!HHHHHH")
_KIND_AND_CLASS = struct.Struct("!HH")
_RECORD = struct.Struct("!HHHIH4s")
_TYPE_A, _CLASS_IN = 1, 1
_NAME_OF_THE_QUESTION = 0xC00C
_TTL_S = 60
_LONGEST_LABEL = 63
_RESPONSE = 0x8000
# Response, authoritative, recursion desired and available.
_FLAGS = 0x8580
_NXDOMAIN = 3


class _Names(asyncio.DatagramProtocol):
    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = answer_to(data, self._addresses)
        if answer is not None:
            self._transport.sendto(answer, addr)


def answer_to(query: bytes, addresses: Mapping[str, str]) -> bytes | None:
    """The question back, and one A record when there is one (RFC 1035, 4.1); None for what is no single question."""
    if len(query) < _HEADER.size:
        return None
    number, flags, questions, *_ = _HEADER.unpack_from(query)
    found = _question(query)
    if found is None or questions != 1 or flags & _RESPONSE:
        return None
    name, kind_and_class, end = found
    address = addresses.get(name)
    record = b""
    if address is not None and kind_and_class == (_TYPE_A, _CLASS_IN):
        packed = IPv4Address(address).packed
        record = _RECORD.pack(_NAME_OF_THE_QUESTION, *kind_and_class, _TTL_S, len(packed), packed)
    flags = _FLAGS if address is not None else _FLAGS | _NXDOMAIN
    return _HEADER.pack(number, flags, 1, int(bool(record)), 0, 0) + query[_HEADER.size : end] + record


def _question(query: bytes) -> tuple[str, tuple[int, int], int] | None:
    """The first question's name in lower case, its type and class, and where it ends; None where it has no end."""
    labels: list[str] = []
    at = _HEADER.size
    while at < len(query) and 0 < query[at] <= _LONGEST_LABEL:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
        at += 1 + query[at]
    end = at + 1 + _KIND_AND_CLASS.size
    if end > len(query) or query[at]:
        return None
    kind, of_class = _KIND_AND_CLASS.unpack_from(query, at + 1)
    return ".".join(labels), (kind, of_class), end


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
