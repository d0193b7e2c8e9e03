"""What a journal costs a permit: two gates in one run, with and without one, in turns.

Rules are known, no delay is set, and turns are free. CPU is that of the thread of the event loop, and that of the process, in
which the journal's thread works, too. The difference is the median of the rounds' differences.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport

ORIGINS, ROUNDS, MOST_US = 4_000, 15, 15.0
ROBOTS = b"User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*?sort=\nDisallow: /cgi\n"
HOSTS = [f"https://h{number}.test" for number in range(ORIGINS)]


async def once(gate: polite.Gate) -> tuple[float, float]:
    """Return the microseconds of a permit: of the thread, and of the process."""
    urls = [f"{host}/page/{number % 97}?q={number}" for number, host in enumerate(HOSTS)]
    process, thread = time.process_time(), time.thread_time()
    for number, url in enumerate(urls):
        async with gate.permit(url) as permit:
            permit.report(status=200)
        if number % 20 == 0:
            await asyncio.sleep(0)
    thread = time.thread_time() - thread
    await asyncio.sleep(0.2)  # until all is written
    return thread / ORIGINS * 1e6, (time.process_time() - process) / ORIGINS * 1e6


async def main() -> None:
    transport = ScriptedTransport({f"{host}/robots.txt": Reply(200, ROBOTS) for host in HOSTS})
    free = polite.PacingPolicy(min_delay=0.0)
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "journal"
        async with (
            polite.open_gate("BenchBot/1.0", pacing=free, transports={"https": transport}) as plain,
            polite.open_gate(
                "BenchBot/1.0", pacing=free, transports={"https": transport}, journal=journal
            ) as kept,
        ):
            gates = {"without": plain, "with": kept}
            for gate in gates.values():
                await once(gate)
            rounds = []
            for number in range(ROUNDS):
                order = list(gates) if number % 2 else list(reversed(gates))
                rounds.append({name: await once(gates[name]) for name in order})
    for at, what in enumerate(("thread of the loop", "process")):
        without, with_ = (statistics.median(each[name][at] for each in rounds) for name in gates)
        more = statistics.median(each["with"][at] - each["without"][at] for each in rounds)
        print(
            f"{what}: {without:.1f} us a permit without a journal, {with_:.1f} us with one, {more:.1f} us more"
        )
        assert at or more <= MOST_US


if __name__ == "__main__":
    asyncio.run(main())
