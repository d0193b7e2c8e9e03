"""`python -m benchmarks.memory`: memory of a parsed file, beside other engines (tracemalloc)."""

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial

from benchmarks.corpus import Case, corpus
from benchmarks.peers import Peer, decisions, peers
from benchmarks.stopwatch import row
from polite.robots.parse import parse

_TARGET = 3.0


def main() -> None:
    """Print the table."""
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
