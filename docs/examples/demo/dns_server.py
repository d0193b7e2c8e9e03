"""A DNS server on loopback that resolves the demo's hosts, and answers NXDOMAIN for any other name."""

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
_POINTER_TO_QUESTION = 0xC00C
_TTL_S = 60
_LONGEST_LABEL = 63
_RESPONSE = 0x8000
# Response, authoritative, recursion desired and available.
_FLAGS = 0x8580
_NXDOMAIN = 3


class _DnsServer(asyncio.DatagramProtocol):
    def __init__(self, addresses: Mapping[str, str]) -> None:
        self._addresses = addresses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        response = response_to(data, self._addresses)
        if response is not None:
            self._transport.sendto(response, addr)


def response_to(query: bytes, addresses: Mapping[str, str]) -> bytes | None:
    """Return the response: the question and at most one A record (RFC 1035, 4.1).

    None if the packet is not a query with exactly one question.
    """
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
        record = _RECORD.pack(_POINTER_TO_QUESTION, *kind_and_class, _TTL_S, len(packed), packed)
    flags = _FLAGS if address is not None else _FLAGS | _NXDOMAIN
    return _HEADER.pack(number, flags, 1, int(bool(record)), 0, 0) + query[_HEADER.size : end] + record


def _question(query: bytes) -> tuple[str, tuple[int, int], int] | None:
    """Return the first question's name in lower case, its type and class, and its end; None if it is incomplete."""
    labels: list[str] = []
    at = _HEADER.size
    while at < len(query) and 0 < query[at] <= _LONGEST_LABEL:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("ascii", "replace").lower())
        at += 1 + query[at]
    end = at + 1 + _KIND_AND_CLASS.size
    if end > len(query) or query[at]:
        return None
    kind, class_ = _KIND_AND_CLASS.unpack_from(query, at + 1)
    return ".".join(labels), (kind, class_), end


@asynccontextmanager
async def dns_server(addresses: Mapping[str, str]) -> AsyncIterator[str]:
    """Serve these names until the block exits. Yields "127.0.0.1:port", as FetchPolicy.nameservers takes it."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: _DnsServer(addresses), local_addr=("127.0.0.1", 0)
    )
    try:
        host, port = transport.get_extra_info("sockname")[:2]
        yield f"{host}:{port}"
    finally:
        transport.close()
