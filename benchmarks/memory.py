"""`python -m benchmarks.memory`: memory of a process before it crawls (VmRSS), and of a parsed file, beside other engines
(tracemalloc)."""

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.corpus import Case, corpus
from benchmarks.peers import Peer, decisions, peers
from benchmarks.stopwatch import row
from polite.robots.parse import parse

_TARGET = 3.0
_STATUS = Path("/proc/self/status")
_RSS = f"""
def print_rss():
    with open({str(_STATUS)!r}) as status:
        print(next(line for line in status if line.startswith("VmRSS")).split()[1])
"""
_CRAWLER = """
import asyncio, tempfile, aiohttp, polite

async def main(folder):
    async with (
        polite.open_gate("ExampleBot/1.0") as gate,
        polite.open_frontier(gate, store=folder + "/queue.sqlite"),
        aiohttp.ClientSession(),
    ):
        await asyncio.sleep(0.5)
        print_rss()

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
"""
_PROCESSES = {
    "Python with asyncio": "import asyncio; print_rss()",
    "the same with aiohttp": "import asyncio, aiohttp; print_rss()",
    "a gate, a frontier in a file, an aiohttp session": _CRAWLER,
}


def main() -> None:
    """Print the tables."""
    if _STATUS.exists():
        print("a new process: resident memory (VmRSS)")
        for name, program in _PROCESSES.items():
            print(f"  {name:56}{resident_mib(program):7.1f} MiB")
    beside = peers()
    what, cases = corpus()
    kept = {
        "the rules that bind one crawler": size(cases, _rules),
        "the same, after all decisions": size(cases, rules_decided),
        "the whole file with its octets, after all decisions": size(cases, file_decided),
    }
    for peer in [each for each in beside if not each.anew]:
        kept[peer.name] = size(cases, partial(_read, peer))
        kept[f"{peer.name}, after all decisions"] = size(cases, partial(peer_decided, peer))
    print(
        f"\n{what}: octets kept per file on average ({sum(len(c.body) for c in cases) // len(cases):,} octets long)"
    )
    for name, octets in kept.items():
        print(f"  {name:56}{octets:10,.0f}")
    protego = kept[f"{beside[0].name}, after all decisions"]
    for name in list(kept)[:3]:
        against = kept[beside[0].name] if name == "the rules that bind one crawler" else protego
        print("  " + row(name, against / kept[name], _TARGET))


def resident_mib(program: str) -> float:
    """Return the MiB that a program prints by `print_rss`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{_RSS}{program}"], capture_output=True, text=True, check=True
    )
    return int(done.stdout) / 1024


def size(cases: list[Case], make: Callable[[Case], object]) -> float:
    """Return octets per file."""
    make(cases[0])
    gc.collect()
    tracemalloc.start()
    files = [make(case) for case in cases]
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / len(files)


def _rules(case: Case) -> object:
    return parse(_copy(case)).rules_for(case.decisions[0][0])


def rules_decided(case: Case) -> object:
    agent = case.decisions[0][0]
    rules = parse(_copy(case)).rules_for(agent)
    for _, path in case.decisions:
        rules.allows(path)
    return rules


def file_decided(case: Case) -> object:
    file = parse(_copy(case))
    for agent, path in case.decisions:
        file.rules_for(agent).allows(path)
    return file


def _read(peer: Peer, case: Case) -> object:
    return peer.read(_text(case))


def peer_decided(peer: Peer, case: Case) -> object:
    file = peer.read(_text(case))
    peer.decide(file, decisions(case))
    return file


def _copy(case: Case) -> bytes:
    """Return a copy of the octets as from a server, so that they count if an engine keeps them."""
    return bytes(bytearray(case.body))


def _text(case: Case) -> str:
    return case.body.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
