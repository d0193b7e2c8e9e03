"""How each ratio is measured: polite and a peer, side by side in this process. Files are robots.txt files to measure with."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from benchmarks import frontier, gate, memory, parse, robots_fetch, store, turnstile, url, virtual
from benchmarks.corpus import Case, corpus, large, made
from benchmarks.decide import WORST, deciding, filled, measured, ours
from benchmarks.peers import GOOGLE, Peer, peers
from benchmarks.ratios.figures import Figures, figures, race
from polite.testing import VirtualTimeLoop


def files(*, real: bool) -> tuple[str, list[Case]]:
    """Return a description and the files: those that are the same on each machine, unless `real` ones are wanted."""
    return corpus() if real else ("1,000 files made by benchmarks/corpus.py", made())


def engine(name: str) -> Peer:
    found = [peer for peer in peers() if peer.name == name]
    if not found:
        raise SystemExit(f"{name} is not installed: run ./dev bench, which installs it")
    return found[0]


def decisions(which: str, rounds: int, cases: list[Case], peer: str = "Protego") -> Figures:
    count = sum(len(case.decisions) for case in cases)
    return race(ours(cases)[which], deciding(engine(peer), cases), rounds=rounds, per=count)


def large_file(rules: int, wild: float, rounds: int, _: list[Case]) -> Figures:
    return decisions("allows", rounds, [large(rules, wild=wild)])


def slowest(_: list[Case], *, long: bool) -> Figures:
    """Return milliseconds of the slowest decision about any hostile file."""
    protego, google = engine("Protego"), engine(GOOGLE)
    found = [measured(filled(make), protego, google) for make in WORST.values()]
    pairs = [(each.long, each.protego_long) if long else (each.short, each.google_short) for each in found]
    ours_ms, theirs_ms = (max(pair[at] for pair in pairs) for at in (0, 1))
    return Figures(ours_ms, theirs_ms, theirs_ms / ours_ms)


def parsing(which: str, rounds: int, cases: list[Case]) -> Figures:
    texts = [case.body.decode("utf-8", "replace") for case in cases]
    protego = partial(parse.read, engine("Protego"), texts)
    return race(parse.ours(cases)[which], protego, rounds=rounds, per=len(cases))


def memory_of(make: Callable[[Case], object], cases: list[Case]) -> Figures:
    """Octets per file. The same objects have the same size, so that one round is enough."""
    theirs = partial(memory.peer_decided, engine("Protego"))
    return figures([memory.size(cases, make)], [memory.size(cases, theirs)])


def urls(make: Callable[[int, Iterator[int]], list[str]], hosts: int, rounds: int, _: list[Case]) -> Figures:
    numbers = iter(range(10**12))
    return figures(*url.times(lambda: make(hosts, numbers), rounds))


def permit(rounds: int, _: list[Case]) -> Figures:
    return figures(*gate.served(lambda port: asyncio.run(gate.measure(port, rounds))))


def robots(what: str, rounds: int, _: list[Case]) -> Figures:
    seen = robots_fetch.served(rounds)
    return figures([each[what] for each in seen], [each["aiohttp GET, new connection"] for each in seen])


def pacing(origins: int, decisions: int, rounds: int, _: list[Case]) -> Figures:
    crowded = turnstile.crowded(turnstile.keys_of(origins))
    turnstile.decide(crowded, decisions)
    pairs = [
        (turnstile.decide(crowded, decisions), turnstile.replace(origins, decisions)) for _ in range(rounds)
    ]
    return figures(*zip(*pairs, strict=True))


def saves(rounds: int, cases: list[Case]) -> Figures:
    usual = sorted((case.body for case in cases), key=len)[len(cases) // 2]
    rates = store.race([usual], rounds)
    saved = {name: [1e6 / puts for puts, _ in pairs] for name, pairs in rates.items()}
    return figures(saved["SqliteStore"], saved["aiosqlite"])


def crawl(hosts: int, fetches: int, rounds: int, _: list[Case]) -> Figures:
    """Return microseconds of CPU per fetch in virtual time, beside as many bare sleeps."""

    async def sleeps() -> None:
        async def host() -> None:
            for _ in range(fetches // hosts):
                await asyncio.sleep(virtual.MIN_DELAY_S)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(hosts):
                tasks.create_task(host())

    return race(
        lambda: _in_virtual_time(virtual.crawl(hosts, fetches)),
        lambda: _in_virtual_time(sleeps()),
        rounds=rounds,
        per=fetches,
    )


def tasks(origins: int, count: int, rounds: int, _: list[Case]) -> Figures:
    """Return microseconds of CPU per task of a frontier, beside an asyncio.PriorityQueue with as many workers."""
    workers = frontier.FEW

    async def queue() -> float:
        waiting: asyncio.PriorityQueue[tuple[int, str]] = asyncio.PriorityQueue()
        start = time.process_time()
        for number, each in enumerate(frontier.urls(count, origins)):
            await waiting.put((number * 7_919 % 1_000, each))

        async def worker() -> None:
            while not waiting.empty():
                await waiting.get()
                await asyncio.sleep(frontier.BUSY_S)

        await asyncio.gather(*(worker() for _ in range(workers)))
        return (time.process_time() - start) / count * 1e6

    def alone() -> float:
        with frontier.without_collector():  # as the frontier is measured
            taken: float = _in_virtual_time(queue())
            return taken

    pairs = [
        (sum(_in_virtual_time(frontier.through_the_frontier(origins, workers, count))), alone())
        for _ in range(rounds)
    ]
    return figures(*zip(*pairs, strict=True))


def _in_virtual_time(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
