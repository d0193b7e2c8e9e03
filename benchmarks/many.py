"""A crawl that several processes share: the numbers that it has to reach. A Valkey server of its own runs on loopback.

`python -m benchmarks.many [--runs N] [--only crawls|store|gate]`: `crawls` are those of tests/many/crawling.py, each fault N
times (1), and take some 40 s each. `store` measures the server's memory and its CPU per call, less what a PING takes, so that
other load does not count; `gate` compares the CPU of permits with those of a gate in memory.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

import redis

import polite
from polite.clock import SystemClock
from polite.origin import Origin
from polite.robots.exchange import Reply
from polite.robots.policy import RobotsPolicy
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from polite.stores.redis.changes import Changes, Ended, PutEntry, encoded
from polite.stores.redis.opening import open_shared
from polite.stores.redis.step import StepReply
from polite.testing import ScriptedTransport
from tests.many.crawling import FAULTS, Fault, Outcome, run, wrong
from tests.many.servers import ValkeyServer
from tests.many.stepping import STEP, digest
from tests.many.world import World

HOMES = 50_000
MILLION = 1_000_000
PER_CALL = 200
MOST_ENTRIES = 60  # puts, and as many ends, of the largest batch that a process sends
LEASE_US = 60_000_000
CALLS = 500
RULES = b"User-agent: *\nDisallow: /private/\nDisallow: /cgi-bin/\nCrawl-delay: 5\nSitemap: https://example.com/sitemap.xml\n"
UNDELAYED = RULES.replace(b"Crawl-delay: 5\n", b"")
ORIGINS, ROUNDS, BATCH = 200, 15, 1_000


def row(what: str, figure: str, limit: str, *, held: bool) -> None:
    print(f"{what:64} {figure:>16}  {limit:<24} {'held' if held else 'NOT HELD'}", flush=True)


# Crawls.


def crawls(runs: int) -> None:
    world = World()
    outcomes = {name: [run(fault, world) for _ in range(runs)] for name, fault in FAULTS.items()}
    everything = [(FAULTS[name], each) for name, ran in outcomes.items() for each in ran]
    for fault, outcome in everything:
        for each in wrong(fault, outcome):
            print(f"wrong: {fault.name}: {each}")
    _counts(everything)
    _rates(world, outcomes)


def _counts(everything: list[tuple[Fault, Outcome]]) -> None:
    gaps = sum(len(outcome.gaps) for _, outcome in everything)
    short = sum(len(outcome.short) for _, outcome in everything)
    lost = sum(outcome.lost for fault, outcome in everything if not fault.empties)
    twice = sum(outcome.twice for fault, outcome in everything if not fault.crashes and not fault.forgets)
    robots = max(outcome.robots for fault, outcome in everything if not fault.forgets)
    row(f"gaps short by more than 1 ms, of {gaps}, {len(everything)} crawls", f"{short}", "0", held=not short)
    row("pages lost, where the store is not emptied", f"{lost}", "0", held=not lost)
    row("pages given out twice without a crash", f"{twice}", "0", held=not twice)
    row("robots.txt per host, unless the store lost acknowledged writes", f"{robots}", "1", held=robots == 1)


def _rates(world: World, outcomes: dict[str, list[Outcome]]) -> None:
    for what, name, limit in (("one partition", "none", 0.7), ("four partitions", "four-partitions", 2.0)):
        calls = statistics.median(each.calls_per_fetch for each in outcomes[name])
        row(
            f"calls of the store per fetch, 8 processes, {what}",
            f"{calls:.2f}",
            f"{limit:g}",
            held=calls <= limit,
        )
    whole = statistics.median(each.efficiency(world) for each in outcomes["none"])
    per_host = statistics.median(_per_host(world, each) for each in outcomes["none"])
    row("efficiency of the crawl", f"{whole:.3f}", "at least 0.92", held=whole >= 0.92)
    row("efficiency per host", f"{per_host:.3f}", "at least 0.95", held=per_host >= 0.95)
    silence = max(max(each.gaps) for each in outcomes["sigkill"])
    limit = world.longest_silence_s
    row("silence of a killed process's hosts", f"{silence:.2f} s", f"{limit:.2f} s", held=silence <= limit)


def _per_host(world: World, outcome: Outcome) -> float:
    """The mean efficiency of all hosts, each from its own first request to its last."""
    return statistics.mean(
        min(1.0, world.pages * world.required_s(host) / sum(each.gaps)) if each.gaps else 0.0
        for host, each in outcome.hosts.items()
    )


# The server.


class Batches:
    """One session that sends batches to a partition."""

    def __init__(self, client: "redis.Redis", partition: int, first_seq: int = 0) -> None:
        self._client = client
        self._prefix = f"polite:{{bench:{partition}}}:"
        self._script = client.script_load(STEP)
        self._seq = first_seq
        self._born: str | None = None

    def send(self, *, room: int = 0, **changes: list) -> StepReply:
        self._seq += 1
        request = {
            "session": "bench", "first": self._seq == 1, "seq": self._seq, "lease": LEASE_US, "beat": LEASE_US // 6,
            "born": self._born, "newborn": "bench", "gate_alone": False, "keyed": False, "max_tries": 3,
            "max_done": 10 * MILLION, "closed": False, "bye": False, "room": room,
        }  # fmt: skip
        text = encoded(request, Changes(**changes))
        reply = StepReply.decode(self._client.evalsha(self._script, 1, self._prefix, text))
        assert reply.err is None, reply.err
        self._born = reply.born
        return reply


class Meter:
    """The CPU of a server's main thread."""

    def __init__(self, server: ValkeyServer) -> None:
        self._schedule = Path(f"/proc/{server.pid}/task/{server.pid}/schedstat")
        self._ping_ms = 0.0
        self._ping_ms = statistics.median(self.ms(server.client.ping) for _ in range(CALLS))

    def ms(self, call) -> float:
        """Return the milliseconds that a call takes, beyond what a PING does."""
        before = self._nanoseconds()
        call()
        return (self._nanoseconds() - before) / 1e6 - self._ping_ms

    def _nanoseconds(self) -> int:
        return int(self._schedule.read_text().split()[0])


def put(home: str, page: int = 0) -> PutEntry:
    path = f"/articles/2024/05/some-title-{page}.html"
    row_text = json.dumps([path, 0, 0, None, None, None, None], separators=(",", ":"))
    origin = f"https://{home}"
    return PutEntry(home, origin, digest(origin + path), row_text, None, again=False, ready_in=None)


def store() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder))
        try:
            server.start()
            _memory(server)
            _times(server)
        finally:
            server.close()


def _memory(server: ValkeyServer) -> None:
    before = int(server.client.info("memory")["used_memory"])
    batches = Batches(server.client, 0)
    homes = [f"www.host{number}.example.com" for number in range(HOMES)]
    for first in range(0, HOMES, PER_CALL):
        batches.send(puts=[put(home) for home in homes[first : first + PER_CALL]])
    asyncio.run(_save_rules(server.url, homes))
    octets = int(server.client.info("memory")["used_memory"]) - before
    gigabytes = octets / HOMES * MILLION / 1e9
    row(
        f"memory, 1,000,000 homes with a task and rules (from {HOMES:,})",
        f"{gigabytes:.2f} GB",
        "1 GB",
        held=gigabytes <= 1,
    )


async def _save_rules(url: str, homes: list[str]) -> None:
    shared = await open_shared(url, SystemClock())
    try:
        for first in range(0, len(homes), PER_CALL):
            origins = [Origin.of(f"https://{home}") for home in homes[first : first + PER_CALL]]
            found = [
                renewed(None, Found(RULES, 200, each.robots_url), RobotsPolicy(), time.time())
                for each in origins
            ]
            await asyncio.gather(*map(shared.robots.save, origins, found))
    finally:
        await shared.close()


def _times(server: ValkeyServer) -> None:
    """Measure in a partition that holds many homes."""
    meter = Meter(server)
    batches = Batches(server.client, 0, first_seq=HOMES)
    batches.send(room=50)
    empty = statistics.median(meter.ms(batches.send) for _ in range(CALLS))
    row("step, CPU of the server, empty batch", f"{empty:.3f} ms", "0.1 ms", held=empty <= 0.1)

    def twenty(number: int) -> float:
        homes = [f"www.host{each}.example.com" for each in range(10)]
        new, old = ([put(home, each) for home in homes] for each in (number + 1, number))
        return meter.ms(lambda: batches.send(puts=new, ended=done(old)))

    entries = statistics.median(map(twenty, range(CALLS)))
    row("step, CPU of the server, 10 puts and 10 ends", f"{entries:.3f} ms", "0.35 ms", held=entries <= 0.35)

    def worst(number: int) -> float:
        """50 homes with 32 rows each are given out, of a partition's own."""
        fresh = Batches(server.client, number)
        for home in (f"www.host{each}.example.com" for each in range(50)):
            fresh.send(puts=[put(home, page) for page in range(32)])
        old, new = (
            [put(f"www.{word}{each}.example.com") for each in range(MOST_ENTRIES)] for word in ("old", "new")
        )
        fresh.send(puts=old)
        return meter.ms(lambda: fresh.send(room=50, puts=new, ended=done(old)))

    most = max(map(worst, range(1, 21)))
    row(
        "step, the same, the largest batch: 60 puts, 60 ends, 50 homes",
        f"{most:.3f} ms",
        "5 ms",
        held=most <= 5,
    )


def done(tasks: list[PutEntry]) -> list[Ended]:
    return [Ended(each.home, each.origin, each.digest, "done") for each in tasks]


# The gate.


def gate() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder), append_only=True)
        try:
            asyncio.run(_gates(server.start().url))
        finally:
            server.close()


async def _gates(url: str) -> None:
    origins = [f"https://host{number}.example" for number in range(ORIGINS)]
    pacing = polite.PacingPolicy(min_delay=0.0)

    def opened(**options):
        transport = ScriptedTransport({f"{origin}/robots.txt": Reply(200, UNDELAYED) for origin in origins})
        return polite.open_gate("BenchBot/1.0", pacing=pacing, transports={"https": transport}, **options)

    async with opened() as alone, opened(store=url, crawl="bench") as shared:
        # Homes are taken, and rules fetched, side by side.
        for gate in (alone, shared):
            await asyncio.gather(*(_permits(gate, [f"{origin}/"]) for origin in origins))
        ratios = []
        for turn in range(-2, ROUNDS):
            urls = [f"{origins[n % ORIGINS]}/item-{turn}-{n}.html" for n in range(BATCH)]
            memory_us, shared_us = await _permits(alone, urls), await _permits(shared, urls)
            if turn >= 0:
                ratios.append(shared_us / memory_us)
    ratio = statistics.median(ratios)
    row(
        "gate.permit in steady state, CPU beside a gate in memory", f"{ratio:.2f}x", "1.1x", held=ratio <= 1.1
    )


async def _permits(gate: polite.Gate, urls: list[str]) -> float:
    start = time.process_time()
    for url in urls:
        async with gate.permit(url) as permit:
            permit.report(status=200)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", choices=["crawls", "store", "gate"], action="append")
    options = parser.parse_args()
    parts = options.only or ["store", "gate", "crawls"]
    print(f"{'what':64} {'measured':>16}  {'limit':<24}")
    if "store" in parts:
        store()
    if "gate" in parts:
        gate()
    if "crawls" in parts:
        crawls(options.runs)


if __name__ == "__main__":
    main()
