"""Which addresses a host has: asked for before a turn is taken, remembered for as long as the answer is good, bounded."""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from polite.ports import AddressSource, Clock
from polite.url.ip import is_address

log = logging.getLogger("polite")

# What a nameserver says of a name's life is taken between these (seconds): names that change each second are asked for less often.
_LEAST_S, _MOST_S = 60.0, 3_600.0
# A name that gave nothing is asked for again after so long (seconds).
_FAILED_S = 60.0
_MOST_HOSTS = 100_000
# Of a host that has more, the least count: each is a turn to be taken.
_MOST_ADDRESSES = 8
# Hosts that gave no address share one scope: slower, and none of them goes past an address that is only not known.
UNKNOWN = ("unknown",)


@dataclass(frozen=True, slots=True)
class _Entry:
    """`fresh_until`: monotonic seconds."""

    addresses: tuple[str, ...]
    fresh_until: float


class AddressBook:
    """Asks `source` once for each host, however many wait; the host asked for longest ago is forgotten first. One event loop."""

    def __init__(self, source: AddressSource, clock: Clock, *, most_hosts: int = _MOST_HOSTS) -> None:
        self._source = source
        self._now = clock.monotonic
        self._most_hosts = most_hosts
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._asking: dict[str, asyncio.Task[None]] = {}

    def known(self, host: str) -> tuple[str, ...]:
        """What was last learned of a host, old or not; nothing before the first `find`, `UNKNOWN` where that found nothing."""
        if is_address(host):
            return (_canonical(host.strip("[]")),)
        entry = self._entries.get(host)
        return () if entry is None else entry.addresses

    async def find(self, host: str) -> bool:
        """See to it that what is known of the host is fresh. Whether that took a wait. Never raises but for a cancellation."""
        entry = self._entries.get(host)
        if is_address(host) or (entry is not None and self._now() < entry.fresh_until):
            return False
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._ask(host), name=f"polite addresses {host}")
            # Also when it is cancelled before it has begun.
            task.add_done_callback(lambda _: self._asking.pop(host, None))
        # Whoever gives up leaves the others undisturbed; the answer is bounded by the resolver's own time.
        await asyncio.wait([task])
        if not self.known(host):
            # Somebody cancelled the question itself: what is not known is not free.
            self._put(host, UNKNOWN, 0.0)
        return True

    async def close(self) -> None:
        """Ask for nothing any more. May be called twice."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        try:
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._source.close()

    async def _ask(self, host: str) -> None:
        try:
            found, ttl_s = await self._source.addresses(host)
            addresses = tuple(sorted({_canonical(each) for each in found}))[:_MOST_ADDRESSES]
            good_s = min(ttl_s, _MOST_S) if ttl_s > _LEAST_S else _LEAST_S
        except OSError:
            addresses, good_s = (), _FAILED_S
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            # Nobody cancelled the question: the source lost something of its own, which is a failure as any other.
            log.exception("the addresses of %s could not be asked for", host, exc_info=error)
            addresses, good_s = (), _FAILED_S
        except Exception:
            log.exception("the addresses of %s could not be asked for", host)
            addresses, good_s = (), _FAILED_S
        # A name that fails for a while has the addresses that it had.
        self._put(host, addresses or self.known(host) or UNKNOWN, good_s)

    def _put(self, host: str, addresses: tuple[str, ...], good_s: float) -> None:
        self._entries[host] = _Entry(addresses, self._now() + good_s)
        self._entries.move_to_end(host)
        while len(self._entries) > self._most_hosts:
            self._entries.popitem(last=False)


def _canonical(address: str) -> str:
    """One spelling for each; an IPv4 address within an IPv6 one is that IPv4 address. Raises ValueError."""
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed)
