"""A connection whose replies a test writes, and whose messages it delays or loses; and a partition or session on it."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polite.stores.redis.changes import Ended, PutEntry
from polite.stores.redis.step import Unreached

Request = dict[str, Any]


@dataclass(frozen=True)
class Fault:
    """What happens to one call: it arrives late, not at all, or its reply is late or lost."""

    before_s: float = 0.0
    after_s: float = 0.0
    request_lost: bool = False
    reply_lost: bool = False


class ScriptedLink:
    """Calls `answer` with each request that arrives.

    Attributes:
        requests: What was sent, with the loop's time.
        faults: Those of the next calls; after them calls take `delay_s`.
        down: No call arrives.
        down_for: No call for these partitions arrives.
    """

    name = "redis://example.com:6379/0"

    def __init__(self, answer: Callable[[Request], Request] | None = None, *, delay_s: float = 0.001) -> None:
        self._answer = answer or (lambda request: {})
        self.requests: list[tuple[float, Request]] = []
        self.faults: deque[Fault] = deque()
        self.delay_s = delay_s
        self.down = False
        self.down_for: set[str] = set()
        self.under_way = self.most_under_way = 0

    @property
    def sent(self) -> list[Request]:
        return [request for _, request in self.requests]

    async def step(self, prefix: str, request: str) -> str:
        given = json.loads(request)
        self.requests.append((asyncio.get_running_loop().time(), given))
        fault = self.faults.popleft() if self.faults else Fault(after_s=self.delay_s)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await self._run(prefix, given, fault)
        finally:
            self.under_way -= 1

    async def _run(self, prefix: str, given: Request, fault: Fault) -> str:
        await asyncio.sleep(fault.before_s)
        if self.down or prefix in self.down_for or fault.request_lost:
            await asyncio.sleep(0.01)
            raise Unreached("connection refused")
        reply = json.dumps(standard_reply(given) | self._answer(given))
        await asyncio.sleep(fault.after_s)
        if fault.reply_lost:
            raise Unreached("connection reset")
        return reply


def standard_reply(request: Request) -> Request:
    """The reply of a server on which nothing else happens."""
    puts, met, loads = (request.get(name, []) for name in ("puts", "met", "loads"))
    return {
        "born": request.get("born", request["newborn"]),
        "epoch": 1,
        "puts": list(range(1, len(puts) + 1)),
        "met": [False for _ in met],
        "loads": [[] for _ in loads],
        "next_in": -1,
    }


def put(number: int, *, again: bool = False, ready_in: int | None = None) -> PutEntry:
    return PutEntry(
        "example.com", "https://example.com", f"digest-{number}", f'["/{number}"]', None, again, ready_in
    )


def ended(number: int) -> Ended:
    return Ended("example.com", "https://example.com", f"digest-{number}", "done")


def digests(entries: list[list[Any]]) -> list[int]:
    """The numbers of `put` or `ended` in a request."""
    return [int(entry[2].removeprefix("digest-")) for entry in entries]
