"""Lists, shows and deletes crawls and robots.txt results on a shared server, for the command line. Each call is bounded."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from polite.errors import InvalidOption, StoreFailed
from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.snapshot import Snapshot
from polite.stores.redis.link import Patience, Script
from polite.stores.redis.opening import SharedStore, crawl_key, crawl_name, partition_prefix
from polite.stores.redis.step import decoded

_SCRIPT, _OF_ORIGIN = Script("inspect"), Script("origin")
# Keys that one SCAN looks at, and that one UNLINK deletes.
_SCANNED = 1_000
# A crawl's key between these is its name.
_BEFORE, _AFTER = "polite:{", "}:crawl"


@dataclass(slots=True)
class PartitionState:
    """One partition, as inspect.lua tells it. Times are seconds from now; each list has at most the entries that were asked for.

    Attributes:
        sessions: Session, its end, how many homes it holds, whether it puts no more tasks.
        held: Home, its session, what is left of a long rest.
        line: Homes that wait for an owner, and from when.
        later: Home, origin, whether it is one task, and when it is ready.
        counts: All sessions, held homes, homes in line, entries that wait for a time.
        quiet_s: For how long no home is given, after the server was another.
    """

    waiting: int
    done: int
    refused: int
    dropped: int
    quiet_s: float
    sessions: list[tuple[str, float, int, bool]] = field(default_factory=list)
    held: list[tuple[str, str, float]] = field(default_factory=list)
    line: list[tuple[str, float]] = field(default_factory=list)
    later: list[tuple[str, str, bool, float]] = field(default_factory=list)
    counts: tuple[int, ...] = (0, 0, 0, 0)


@dataclass(slots=True)
class OriginState:
    """One origin of a crawl, as origin.lua tells it. Times are seconds from now.

    Attributes:
        left: Its tasks that have not ended.
        out: Those of them that a worker has.
        ended: How many ended tasks are remembered.
        home: Its home; None if that holds nothing, or has a name that does not follow from the origin.
        session: The session that holds the home.
        ends_s: When that session ends unless it is renewed.
        delayed_s: What is left of a long delay of the home.
        line_s: From when a session may take the home, if none holds it.
        postponed_s: When robots.txt is asked for again, if it was unreachable.
    """

    left: int
    out: int
    ended: int
    home: str | None = None
    session: str | None = None
    ends_s: float | None = None
    delayed_s: float = 0.0
    line_s: float | None = None
    postponed_s: float | None = None


class SharedInspector:
    """Looks into an opened shared store.

    Raises:
        StoreFailed: (each method) The server is not reached, or refuses.
    """

    def __init__(self, shared: SharedStore, patience: Patience) -> None:
        self._shared = shared
        self._link = shared.link
        self._patience = patience

    async def crawls(self, limit: int) -> list[str]:
        """Return the names of at most so many crawls."""
        names: set[str] = set()
        async for keys, _ in self._scan(f"{_BEFORE}*{_AFTER}"):
            names |= {key.removeprefix(_BEFORE).removesuffix(_AFTER) for key in keys}
            if len(names) >= limit:
                break
        return sorted(names)[:limit]

    async def terms(self, crawl: str) -> dict[str, str]:
        """Return the crawl's terms. Raises StoreFailed if there is no such crawl."""
        key = crawl_key(crawl_name(crawl))
        flat = await self._call("HGETALL", key)
        terms = {_text(name): _text(value) for name, value in dict(flat).items()}
        if not terms.get("partitions", "").isdecimal():
            raise StoreFailed(f"{self._link.name}: there is no crawl {crawl!r}")
        return terms

    async def partitions(self, crawl: str, limit: int) -> list[PartitionState]:
        """Return all partitions of a crawl, with at most `limit` entries of each list."""
        count = int((await self.terms(crawl))["partitions"])
        prefixes = [partition_prefix(crawl, number) for number in range(count)]
        return [PartitionState(**await self._run(_SCRIPT, prefix, limit)) for prefix in prefixes]

    async def origin(self, crawl: str, origin: Origin) -> OriginState | None:
        """Return what a crawl holds of an origin, if anything."""
        count = int((await self.terms(crawl))["partitions"])
        names = [origin.host, *_domains(origin.host)]
        for number in range(count):
            told = await self._run(_OF_ORIGIN, partition_prefix(crawl, number), origin.text, *names)
            if told["left"] or told["ended"] or "home" in told:
                return OriginState(**told)
        return None

    async def robots(self, origin: Origin) -> tuple[Snapshot | None, SavedBackOff | None]:
        """Return the robots.txt result and the back-off of an origin."""
        return await self._shared.robots.load(origin), await self._shared.robots.held(origin)

    async def forget_robots(self, origin: Origin) -> int:
        """Delete the robots.txt result and the back-off of an origin; return how many keys that were."""
        key = f"polite:{{r:{origin}}}"
        return int(await self._call("UNLINK", key)) + int(await self._call("UNLINK", f"{key}:b"))

    async def purge(self, crawl: str) -> int:
        """Delete a crawl, a thousand keys at a time; return how many keys that were.

        Raises:
            InvalidOption: A session of it is live: its process would fail with StoreEmptied.
        """
        live = [each for part in await self.partitions(crawl, 1) for each in part.sessions if each[1] > 0]
        if live:
            raise InvalidOption(
                f"crawl {crawl!r} is used: a session ends in {max(end for _, end, _, _ in live):.0f} s unless it is renewed; "
                "stop its processes first"
            )
        deleted = 0
        # A number follows: in the keys of robots.txt results an origin follows the colon.
        async for keys, node in self._scan(f"polite:{{{crawl}:[0-9]*"):
            for key in keys:
                deleted += int(await self._call("UNLINK", key, node=node))
        return deleted + int(await self._call("UNLINK", crawl_key(crawl)))

    async def _run(self, script: Script, prefix: str, *arguments: str | int) -> dict[str, Any]:
        reply = await self._patience.wait_for(lambda: self._link.run(script, [prefix], *arguments))
        return decoded(reply)

    async def _scan(self, pattern: str) -> AsyncIterator[tuple[list[str], Any]]:
        """Yield keys in portions, and the node that has them. A key may come twice."""
        for node in await self._patience.wait_for(self._link.masters):
            cursor = 0
            while True:
                reply = await self._call("SCAN", cursor, "MATCH", pattern, "COUNT", _SCANNED, node=node)
                next_one, keys = reply
                # A cluster's client has a dict by node.
                cursor = int(*next_one.values()) if isinstance(next_one, dict) else int(next_one)
                yield [_text(key) for key in keys], node
                if not cursor:
                    break

    async def _call(self, *command: str | int, node: Any = None) -> Any:  # noqa: ANN401 - of redis-py
        return await self._patience.wait_for(lambda: self._link.call(*command, node=node))


def _domains(host: str) -> list[str]:
    """Return the domains above a host: one of them is the home where homes are registrable domains."""
    labels = host.split(".")
    return [] if host.startswith("[") else [".".join(labels[first:]) for first in range(1, len(labels))]


def _text(word: Any) -> str:  # noqa: ANN401 - as the client decodes
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)
