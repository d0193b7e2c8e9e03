"""A nameserver on loopback that answers as a test tells it to: with addresses, an error, a lie, or not at all."""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

A, AAAA = 1, 28
FORMERR, SERVFAIL, NXDOMAIN, REFUSED = 1, 2, 3, 5
SILENCE, GARBAGE = "silence", "garbage"

# What is said about a name: a status code, a lie, or addresses; as a list, one after another, and the last stands.
Said = int | str | tuple[str, ...]


class _Names(asyncio.DatagramProtocol):
    def __init__(self, names: Mapping[tuple[str, int] | str, Said | list[Said]]) -> None:
        self._names = {key: list(said) if isinstance(said, list) else [said] for key, said in names.items()}
        self.asked = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.asked += 1
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        name, (kind, _) = ".".join(labels).lower(), struct.unpack_from("!HH", data, at + 1)
        answer = self._answer(data[:2], data[12 : at + 5], kind, self._said(name, kind))
        if answer is not None:
            self._transport.sendto(answer, addr)

    def _said(self, name: str, kind: int) -> Said:
        said = self._names.get((name, kind), self._names.get(name, [NXDOMAIN]))
        return said.pop(0) if len(said) > 1 else said[0]

    def _answer(self, number: bytes, question: bytes, kind: int, said: Said) -> bytes | None:
        if said == SILENCE:
            return None
        if said == GARBAGE:
            # One answer is promised; what follows is the beginning of none.
            return number + struct.pack("!5H", 0x8580, 1, 1, 0, 0) + question + b"\xc0\x0c\x00"
        if isinstance(said, int):
            return number + struct.pack("!5H", 0x8580 | said, 1, 0, 0, 0) + question
        packed = [ip_address(each).packed for each in said]
        records = [
            b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(each)) + each
            for each in packed
            if len(each) == (4 if kind == A else 16)
        ]
        return number + struct.pack("!5H", 0x8580, 1, len(records), 0, 0) + question + b"".join(records)


@asynccontextmanager
async def telling(names: Mapping[Any, Any]) -> AsyncIterator[str]:
    """Answer for these names, or for (name, kind), while the block lasts; gives "127.0.0.1:port"."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Names(names), local_addr=("127.0.0.1", 0))
    try:
        host, port = transport.get_extra_info("sockname")[:2]
        yield f"{host}:{port}"
    finally:
        transport.close()
