"""`python -m benchmarks.loop_lag`: the longest time for which the event loop stands still.

While 500 KiB files arrive; and while links of 2,000 characters are put that such a file takes long to decide about.
"""

import asyncio
import time

import polite
from benchmarks.decide import WORST, filled, worst_paths
from polite.robots.fetching.exchange import Reply
from polite.testing import ScriptedTransport

_FILES = 24
_LINKS, _LINK_LENGTH = 300, 2_000
_KNOWN = "https://known.example"
_TARGET_MS = 20.0
_TICK_S = 0.001
_LITERAL = "Disallow: /a/literal/path/{}"


def main() -> None:
    """Print the table."""
    bodies = {
        "nothing arrives (the ticker alone)": None,
        "literal rules": filled(_LITERAL.format),
        **{f"wildcards: {name}": filled(make) for name, make in WORST.items()},
        "a page of HTML": b"<html>\n" + b"<a href='https://example.com/'>text</a>\n" * 13_000,
        "blank lines": b"User-agent: *\nDisallow: /\n" + b"\n" * 510_000,
    }
    print(f"The longest stall of the loop while {_FILES} files of 500 KiB arrive at one gate, ms")
    print(f"  {'':40}{'longest':>10}{'99 of 100':>12}{'a file, all in all':>20}")
    worst = 0.0
    for name, body in bodies.items():
        stalls, took = asyncio.run(_arrive(body))
        worst = max(worst, stalls[-1])
        each = took / _FILES * 1e3
        print(f"  {name:40}{stalls[-1]:10.2f}{stalls[len(stalls) * 99 // 100]:12.2f}{each:20.1f}")
    print(f"The same while `put_many` takes {_LINKS} links of {_LINK_LENGTH:,} characters of one origin, ms")
    print(f"  {'':40}{'longest':>10}{'99 of 100':>12}{'a link, all in all':>20}")
    for name, make in WORST.items():
        stalls, took = asyncio.run(_put(filled(make)))
        worst = max(worst, stalls[-1])
        each = took / _LINKS * 1e3
        print(f"  {name:40}{stalls[-1]:10.2f}{stalls[len(stalls) * 99 // 100]:12.2f}{each:20.1f}")
    print(
        f"  longest of all: {worst:.2f} ms (target {_TARGET_MS:g}: {'held' if worst <= _TARGET_MS else 'NOT HELD'})"
    )


async def _arrive(body: bytes | None) -> tuple[list[float], float]:
    """The stalls in ms, sorted, and the seconds that it took."""
    origins = [f"https://host{number}.example" for number in range(_FILES)]
    answer = Reply(404) if body is None else Reply(200, body)
    transport = ScriptedTransport({f"{origin}/robots.txt": answer for origin in origins})
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


async def _put(body: bytes) -> tuple[list[float], float]:
    """The stalls in ms, sorted, and the seconds until all links are put and decided about."""
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


async def _tick(stalls: list[float]) -> None:
    """How much later than asked for each tick comes, in ms."""
    while True:
        before = time.perf_counter()
        await asyncio.sleep(_TICK_S)
        stalls.append((time.perf_counter() - before - _TICK_S) * 1e3)


if __name__ == "__main__":
    main()
