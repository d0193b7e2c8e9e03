"""How fast robots.txt results are saved and loaded: SqliteStore beside aiosqlite, and what a store costs a gate.

Both write the same rows to the same table with the same number of concurrent callers. Rows survive the end of the process once
`save` returns. aiosqlite is used as documented: one connection, INSERT and commit, SELECT. The gate's hot path is a permit for a
known origin; the two gates alternate in one process, and CPU is what `time.process_time` counts.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiosqlite

import polite
from benchmarks.corpus import corpus
from polite.origin import Origin
from polite.robots.exchange import Reply
from polite.robots.policy import BODY_LIMIT, RobotsPolicy
from polite.robots.result import Found
from polite.robots.snapshot import Snapshot, renewed
from polite.stores import codec
from polite.stores.memory import MemoryStore
from polite.stores.robots_database import STEPS
from polite.stores.sqlite import SqliteStore
from polite.testing import ScriptedTransport

SNAPSHOTS, AT_ONCE, ROUNDS = 10_000, 500, 5
PUTS, GETS, GATE = 20_000, 10_000, 1.2
ORIGINS, PERMITS = 200, 2_000

Work = Callable[[Origin, Snapshot], Awaitable[object]]

_COLUMNS = ", ".join(codec.COLUMNS)
_PUT = f"INSERT OR REPLACE INTO robots ({_COLUMNS}) VALUES ({', '.join('?' * len(codec.COLUMNS))})"  # noqa: S608
_GET = f"SELECT {_COLUMNS} FROM robots WHERE origin = ?"  # noqa: S608 - constant column names


async def rate(work: Work, known: list[tuple[Origin, Snapshot]]) -> float:
    """Return calls per second, with this many in flight."""
    left = iter(known)

    async def worker() -> None:
        for origin, snapshot in left:
            await work(origin, snapshot)

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return len(known) / (time.perf_counter() - start)


async def ours(folder: Path, known: list[tuple[Origin, Snapshot]]) -> tuple[float, float]:
    store = SqliteStore(folder / "ours.sqlite")
    await store.open()

    async def get(origin: Origin, snapshot: Snapshot) -> None:
        assert await store.load(origin) == snapshot

    rates = await rate(store.save, known), await rate(get, known)
    await store.close()
    return rates


async def theirs(folder: Path, known: list[tuple[Origin, Snapshot]]) -> tuple[float, float]:
    async with aiosqlite.connect(folder / "theirs.sqlite") as connection:
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "wal_autocheckpoint = 4000"):
            await connection.execute(f"PRAGMA {pragma}")
        for step in STEPS:
            await connection.executescript(step)

        async def put(origin: Origin, snapshot: Snapshot) -> None:
            await connection.execute(_PUT, codec.row(str(origin), snapshot))
            await connection.commit()

        async def get(origin: Origin, snapshot: Snapshot) -> None:
            async with connection.execute(_GET, (str(origin),)) as cursor:
                assert codec.snapshot(await cursor.fetchone() or ()) == snapshot

        return await rate(put, known), await rate(get, known)


def snapshots(bodies: list[bytes]) -> list[tuple[Origin, Snapshot]]:
    made = []
    for number in range(SNAPSHOTS):
        origin = Origin.of(f"https://host{number}.example")
        access = Found(bodies[number % len(bodies)][:BODY_LIMIT], 200, origin.robots_url)
        made.append((origin, renewed(None, access, RobotsPolicy(), 1e9)))
    return made


def race(bodies: list[bytes], rounds: int = ROUNDS) -> dict[str, list[tuple[float, float]]]:
    known = snapshots(bodies)
    rates: dict[str, list[tuple[float, float]]] = {"SqliteStore": [], "aiosqlite": []}
    for _ in range(rounds):
        for name, run in (("SqliteStore", ours), ("aiosqlite", theirs)):
            with tempfile.TemporaryDirectory() as folder:
                rates[name].append(asyncio.run(run(Path(folder), known)))
    return rates


async def permits(gate: polite.Gate, turn: int) -> float:
    """Return microseconds of CPU per permit."""
    urls = [f"https://host{n % ORIGINS}.example/shop/item-{turn}-{n}.html" for n in range(PERMITS)]
    start = time.process_time()
    for url in urls:
        async with gate.permit(url) as permit:
            permit.report(status=200)
    return (time.process_time() - start) / len(urls) * 1e6


def gate(store: MemoryStore | str):
    rules = Reply(200, b"User-agent: *\nDisallow: /private/\nDisallow: /*?sort=\n")
    transport = ScriptedTransport({f"https://host{n}.example/robots.txt": rules for n in range(ORIGINS)})
    pacing = polite.PacingPolicy(min_delay=0.0)
    return polite.open_gate("BenchBot/1.0", pacing=pacing, transports={"https": transport}, store=store)


async def hot_path(folder: str) -> tuple[list[float], list[float]]:
    in_memory, in_file = [], []
    async with gate(MemoryStore()) as first, gate(f"{folder}/gate.sqlite") as second:
        for turn in range(-1, 3 * ROUNDS):
            pair = await permits(first, turn), await permits(second, turn)
            if turn >= 0:
                in_memory.append(pair[0])
                in_file.append(pair[1])
    return in_memory, in_file


def show(what: str, rates: dict[str, list[tuple[float, float]]], targets: tuple[float, float]) -> None:
    for column, (verb, target) in enumerate(zip(("puts", "gets"), targets, strict=True)):
        own = statistics.median(pair[column] for pair in rates["SqliteStore"])
        peer = statistics.median(pair[column] for pair in rates["aiosqlite"])
        held = "held" if own >= target else "NOT HELD"
        print(f"{what:28} {verb} {own:10,.0f} {peer:10,.0f} {own / peer:7.1f}x   (target {target:,}: {held})")


def main() -> None:
    what, cases = corpus()
    bodies = [case.body for case in cases]
    usual = sorted(bodies, key=len)[len(bodies) // 2]
    print(
        f"{what}; {AT_ONCE} at once\n{'per second, median':33} {'SqliteStore':>10} {'aiosqlite':>9}   ratio"
    )
    show(f"the median, {len(usual)} octets", race([usual]), (PUTS, GETS))
    show("all sizes", race(bodies), (PUTS, GETS))
    with tempfile.TemporaryDirectory() as folder:
        in_memory, in_file = asyncio.run(hot_path(folder))
    ratio = statistics.median(there / here for here, there in zip(in_memory, in_file, strict=True))
    print(
        f"permit, us of CPU: {statistics.median(in_memory):.2f} in memory, {statistics.median(in_file):.2f} with a file"
    )
    print(f"file / memory: {ratio:.2f}   (target {GATE}: {'held' if ratio <= GATE else 'NOT HELD'})")


if __name__ == "__main__":
    main()
