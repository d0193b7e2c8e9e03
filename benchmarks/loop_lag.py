"""`python -m benchmarks.loop_lag`: the longest time for which the event loop is blocked.

Measured while 500 KiB files arrive, while long links are put that such a file decides slowly, while an origin with many tasks is
dropped, and while the policy of a gate with many origins is replaced.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import polite
from benchmarks.decide import WORST, filled, worst_paths
from polite.robots.exchange import Failed, Reply
from polite.robots.reason import Reason
from polite.testing import ScriptedTransport

_FILES = 24
_LINKS, _LINK_LENGTH = 300, 2_000
_TASKS, _OVERRIDES, _ORIGINS = 50_000, 5_000, 50_000
_KNOWN = "https://known.example"
_TARGET_MS = 20.0
_TICK_S = 0.001
_LITERAL = "Disallow: /a/literal/path/{}"


def main() -> None:
    """Print the table."""
    worst = max(_print_files(), _print_links(), _print_changes())
    print(
        f"  longest of all: {worst:.2f} ms (target {_TARGET_MS:g}: {'held' if worst <= _TARGET_MS else 'NOT HELD'})"
    )


def _print_files() -> float:
    """Print the stalls while files arrive, and return the longest."""
    bodies = {
        "nothing arrives (only the ticker)": None,
        "literal rules": filled(_LITERAL.format),
        **{f"wildcards: {name}": filled(make) for name, make in WORST.items()},
        "a page of HTML": b"<html>\n" + b"<a href='https://example.com/'>text</a>\n" * 13_000,
        "blank lines": b"User-agent: *\nDisallow: /\n" + b"\n" * 510_000,
    }
    print(f"The longest stall of the loop while {_FILES} files of 500 KiB arrive at one gate, ms")
    print(f"  {'':40}{'longest':>10}{'99 of 100':>12}{'total per file':>20}")
    worst = 0.0
    for name, body in bodies.items():
        stalls, took = asyncio.run(_arrive(body))
        worst = max(worst, stalls[-1])
        _print_row(name, stalls, took / _FILES)
    return worst


def _print_links() -> float:
    """Print the stalls while links are put, and return the longest."""
    print(f"The same while `put_many` takes {_LINKS} links of {_LINK_LENGTH:,} characters of one origin, ms")
    print(f"  {'':40}{'longest':>10}{'99 of 100':>12}{'total per link':>20}")
    worst = 0.0
    for name, make in WORST.items():
        stalls, took = asyncio.run(_install(filled(make)))
        worst = max(worst, stalls[-1])
        _print_row(name, stalls, took / _LINKS)
    return worst


def _print_row(name: str, stalls: list[float], each_s: float) -> None:
    print(f"  {name:40}{stalls[-1]:10.2f}{stalls[len(stalls) * 99 // 100]:12.2f}{each_s * 1e3:20.1f}")


def _print_changes() -> float:
    """Print the stalls during large changes, and return the longest."""
    print("The same during one large change, ms")
    print(f"  {'':60}{'longest':>10}{'total':>14}")
    changes: dict[str, Callable[[list[float]], Awaitable[float]]] = {
        f"an origin with {_TASKS:,} tasks is dropped": lambda stalls: _give_up(
            stalls, Failed(Reason.DNS_NXDOMAIN)
        ),
        f"{_TASKS:,} tasks are refused by Disallow: /": lambda stalls: _give_up(
            stalls, Reply(200, b"User-agent: *\nDisallow: /\n")
        ),
        f"one more override beside {_OVERRIDES:,}": _override,
        f"new limits for {_ORIGINS:,} known origins": _relimit,
    }
    worst = 0.0
    for name, change in changes.items():
        stalls: list[float] = []
        took = asyncio.run(_measured(change, stalls))
        worst = max(worst, stalls[-1])
        print(f"  {name:60}{stalls[-1]:10.2f}{took * 1e3:14.1f}")
    return worst


async def _arrive(body: bytes | None) -> tuple[list[float], float]:
    """Return the sorted stalls in ms, and the seconds that it took."""
    origins = [f"https://host{number}.example" for number in range(_FILES)]
    response = Reply(404) if body is None else Reply(200, body)
    transport = ScriptedTransport({f"{origin}/robots.txt": response for origin in origins})
    stalls: list[float] = []
    ticking = asyncio.create_task(_tick(stalls))
    started = time.perf_counter()
    pacing = polite.PacingPolicy(min_delay=0.0)
    async with polite.open_gate(
        "BenchBot/1.0", pacing=pacing, transports={"http": transport, "https": transport}
    ) as gate:
        await asyncio.gather(*(gate.check(f"{origin}/some/page.html?x=1") for origin in origins))
        took = time.perf_counter() - started
        await asyncio.sleep(0.05)
    ticking.cancel()
    return sorted(stalls), took


async def _install(body: bytes) -> tuple[list[float], float]:
    """Return the sorted stalls in ms, and the seconds until all links are put and decided."""
    transport = ScriptedTransport({f"{_KNOWN}/robots.txt": Reply(200, body)})
    spoken = {"http": transport, "https": transport}
    stalls: list[float] = []
    pacing = polite.PacingPolicy(min_delay=0.0)
    paths = worst_paths(_LINK_LENGTH - 4)
    links = [f"{_KNOWN}{paths[n % len(paths)]}{n:04}" for n in range(_LINKS)]
    async with (
        polite.open_gate("BenchBot/1.0", pacing=pacing, transports=spoken) as gate,
        polite.open_frontier(gate) as frontier,
    ):
        await gate.check(_KNOWN)
        ticking = asyncio.create_task(_tick(stalls))
        started = time.perf_counter()
        await frontier.put_many(links)
        frontier.close()
        async for permit in frontier:
            async with permit:
                pass
        took = time.perf_counter() - started
    ticking.cancel()
    return sorted(stalls), took


async def _measured(change: Callable[[list[float]], Awaitable[float]], stalls: list[float]) -> float:
    took = await change(stalls)
    stalls.sort()
    return took


async def _give_up(stalls: list[float], response: Reply | Failed) -> float:
    """Return the seconds from the response for robots.txt until no task is left."""
    transport = ScriptedTransport({f"{_KNOWN}/robots.txt": response})
    transport.hold()
    async with (
        polite.open_gate(
            "BenchBot/1.0", pacing=polite.PacingPolicy(min_delay=0.0), transports={"https": transport}
        ) as gate,
        polite.open_frontier(gate, max_waiting=_TASKS, max_robots_tries=1) as frontier,
    ):
        await frontier.put_many([f"{_KNOWN}/{number}" for number in range(_TASKS)])
        ticking = asyncio.create_task(_tick(stalls))
        started = time.perf_counter()
        transport.let_go()
        await frontier.join()
        took = time.perf_counter() - started
        await asyncio.sleep(0.05)
    ticking.cancel()
    return took


async def _override(stalls: list[float]) -> float:
    """Return the seconds for ten assignments, each with one more origin."""
    pacing = polite.PacingPolicy()
    for number in range(_OVERRIDES):
        pacing = pacing.override(f"https://host{number}.example", min_delay=1.0 + number)
    async with polite.open_gate("BenchBot/1.0", pacing=pacing, transports={}) as gate:
        ticking = asyncio.create_task(_tick(stalls))
        await asyncio.sleep(0.01)
        started = time.perf_counter()
        for number in range(10):
            gate.pacing = gate.pacing.override(f"https://more{number}.example", min_delay=5.0)
            await asyncio.sleep(0)
        took = time.perf_counter() - started
        await asyncio.sleep(0.01)
    ticking.cancel()
    return took


async def _relimit(stalls: list[float]) -> float:
    """Return the seconds until new limits are in force."""
    transport = ScriptedTransport()
    pacing = polite.PacingPolicy(min_delay=600.0)
    async with polite.open_gate("BenchBot/1.0", pacing=pacing, transports={"https": transport}) as gate:
        for start in range(0, _ORIGINS, 500):
            some = range(start, start + 500)
            await asyncio.gather(*(gate.check(f"https://host{number}.example/") for number in some))
        ticking = asyncio.create_task(_tick(stalls))
        await asyncio.sleep(0.01)
        started = time.perf_counter()
        gate.pacing = replace(gate.pacing, concurrency=2)
        took = time.perf_counter() - started
        await asyncio.sleep(0.05)
    ticking.cancel()
    return took


async def _tick(stalls: list[float]) -> None:
    """Record by how many ms each tick is late."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(_TICK_S)
        stalls.append((time.perf_counter() - before - _TICK_S) * 1e3)


if __name__ == "__main__":
    main()
