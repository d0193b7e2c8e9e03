"""Downloads: one request for a large body over a gate's transports."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from polite.gate.signatures import Signatures
from polite.origin import Target
from polite.ports import Ask, Failed, Reply, StreamingTransport, Transport
from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason

# Octets of a body that a transport can only return whole.
_MOST_WHOLE = 16 << 20


class Downloads:
    """Sends requests other than those for robots.txt, with the gate's User-Agent and its guarded addresses.

    Attributes:
        schemes: The schemes that have a transport.
        fetching: The limits of the transports.
        connections: How many requests may be in flight. Half of the gate's connections are left to robots.txt.
    """

    def __init__(
        self,
        transports: Mapping[str, Transport],
        fetching: FetchPolicy,
        signatures: Signatures | None = None,
    ) -> None:
        self.schemes: frozenset[str] = frozenset(transports)
        self.fetching = fetching
        self.connections: asyncio.Semaphore = asyncio.Semaphore(max(1, fetching.connections // 2))
        self._transports = transports
        self._signatures = signatures

    async def get(
        self,
        target: Target,
        max_bytes: int,
        timeout_s: float,
        *,
        begun: Callable[[Reply], None],
        take: Callable[[bytes], Awaitable[None]],
        ready: Callable[[], Awaitable[None]],
        option: str,
    ) -> Reply | Failed:
        """Send one request, and pass its body on (see ports.StreamingTransport). Raises what `take` raises, and OSError of it.

        Args:
            ready: Awaited when the connection is there (see Ask).
            option: The name of the option that sets `timeout_s`, for messages.
        """
        transport = self._transports[target.origin.scheme]
        network = NetworkTimeout(timeout_s, ready)
        ask = Ask(target, max_bytes, network.ready)
        if self._signatures is not None:
            ask = self._signatures.added(ask)
        try:
            async with network.timeout:
                if isinstance(transport, StreamingTransport):
                    return await transport.stream(ask, begun, take)
                response = await transport.get(replace(ask, max_bytes=min(max_bytes, _MOST_WHOLE)))
                if isinstance(response, Reply):
                    begun(response)
                    await take(response.body)
                return response
        except TimeoutError:
            return Failed(Reason.TIMEOUT, f"no whole response within {option}={timeout_s:g} s")


class NetworkTimeout:
    """A time-out of the network, which stands still while a request that has its connection waits until it may be sent.

    Attributes:
        timeout: The time-out, to be entered.
        waited_s: How long it stood still (seconds).
    """

    def __init__(self, seconds: float, ready: Callable[[], Awaitable[None]]) -> None:
        self.timeout: asyncio.Timeout = asyncio.timeout(seconds)
        self.waited_s: float = 0.0
        self._ready = ready

    async def ready(self) -> None:
        """Await `ready` inside the time-out (see Ask)."""
        time = asyncio.get_running_loop().time
        began, ends_at = time(), self.timeout.when()
        self.timeout.reschedule(None)
        try:
            await self._ready()
        finally:
            waited_s = time() - began
            self.waited_s += waited_s
            self.timeout.reschedule(None if ends_at is None else ends_at + waited_s)
