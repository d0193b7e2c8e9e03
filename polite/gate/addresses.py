"""The addresses of hosts: resolved before a turn is taken, cached for the lifetime of the result, bounded."""

import asyncio
import math
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address

from polite.log import fields, log
from polite.ports import AddressSource, Clock
from polite.url.host import is_address

# Bounds of a name's lifetime (seconds): names that change each second are resolved less often.
_LEAST_S, _MOST_S = 60.0, 3_600.0
# A name without an address is resolved again after this (seconds).
_FAILED_S = 60.0
_MOST_HOSTS = 100_000
# Of a host with more, the first in order count: each is a scope of its turns.
_MOST_ADDRESSES = 8
# Hosts without an address share one scope. That is slower, and cannot exceed the limit of an address that is not known.
UNKNOWN = ("unknown",)


class AddressBook:
    """An LRU cache in front of `source`. All callers that wait for one host share one lookup. For one event loop."""

    def __init__(self, source: AddressSource, clock: Clock) -> None:
        self._source = source
        self._now = clock.monotonic
        # By host: its addresses, and until when they are fresh (monotonic seconds).
        self._entries: OrderedDict[str, tuple[tuple[str, ...], float]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}

    def known(self, host: str) -> tuple[str, ...]:
        """Return the last result, fresh or not: empty before the first `find`, `UNKNOWN` if that found none."""
        if is_address(host):
            return (_canonical(host.strip("[]")),)
        return self._entries.get(host, ((), 0.0))[0]

    async def find(self, host: str) -> bool:
        """Resolve the host unless its addresses are fresh. Return whether that took a wait. Only a cancellation is raised."""
        if is_address(host) or self._now() < self._entries.get(host, ((), -math.inf))[1]:
            return False
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._ask(host), name=f"polite addresses {host}")
            # This runs for a task that is cancelled before it began, too.
            task.add_done_callback(lambda _: self._asking.pop(host, None))
        # A caller that is cancelled does not disturb the others. The resolver's own timeout bounds the wait.
        await asyncio.wait([task])
        if not self.known(host):
            # The lookup itself was cancelled: an unknown address is not free.
            self._put(host, UNKNOWN, 0.0)
        return True

    async def close(self) -> None:
        """Cancel all lookups, and close the source. May be called twice."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._source.close()

    async def _ask(self, host: str) -> None:
        addresses: tuple[str, ...] = ()
        good_s = _FAILED_S
        try:
            found, ttl_s = await self._source.addresses(host)
            addresses = tuple(sorted({_canonical(each) for each in found}))[:_MOST_ADDRESSES]
            good_s = min(ttl_s, _MOST_S) if ttl_s > _LEAST_S else _LEAST_S
        except OSError:
            pass
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise
            # A source of the user. If the lookup was not cancelled, something inside the source was: a failure like any other.
            extra = fields("addresses_failed", host=host, error=error)
            log.exception("the addresses of %s could not be resolved", host, extra=extra)
        # A name that fails for a while keeps its last addresses.
        self._put(host, addresses or self.known(host) or UNKNOWN, good_s)

    def _put(self, host: str, addresses: tuple[str, ...], good_s: float) -> None:
        self._entries[host] = addresses, self._now() + good_s
        self._entries.move_to_end(host)
        while len(self._entries) > _MOST_HOSTS:
            self._entries.popitem(last=False)


def _canonical(address: str) -> str:
    """Return the canonical spelling. An IPv4-mapped IPv6 address is that IPv4 address. Raises ValueError."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)
