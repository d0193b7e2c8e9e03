"""What one decision of pacing costs, in CPU and memory, as the origins grow to a million.

A decision: a waiting turn is granted, settled and released, and the next request of its origin starts to wait. Each origin
has one waiting request, a scope of its own, and a delay of 1 s. They become ready in an order unlike that of memory. For
comparison, the same run has one `heapq.heapreplace` on a heap of the same size. Memory is what `tracemalloc` counts for scope,
waiting turn and wake-up, without the keys, which belong to the crawler.
"""

import asyncio
import gc
import heapq
import random
import time
import tracemalloc

from polite.clock import SystemClock
from polite.pacing.pacer import LocalPacer
from polite.pacing.turnstile import Turnstile

SIZES = (1_000, 100_000, 1_000_000)
DECISIONS = 300_000
UNCONTENDED = 100_000
TASKS = 100_000
MOST_US, MOST_BYTES, MOST_BYTES_PER_TASK, MOST_CANCEL_S = 5.0, 1024, 4096, 2.0

Keys = list[tuple[str]]


def keys_of(count: int) -> Keys:
    keys = [(f"https://www.host-{number}.example",) for number in range(count)]
    random.Random(1).shuffle(keys)
    return keys


def crowded(keys: Keys) -> Turnstile:
    """Return a turnstile in which each origin becomes ready within the next second, and has one waiting request."""
    turnstile, chance = Turnstile(max_waiting=2 * len(keys)), random.Random(2)
    for key in keys:
        turn = turnstile.request(key, 0.0)
        turnstile.settle(turn, 0.0, chance.random())
        turnstile.release(turn, 0.0)
        turnstile.request(key, 0.0)
    return turnstile


def decide(turnstile: Turnstile, decisions: int) -> float:
    """Return microseconds of CPU per decision, as the clock advances from wake-up to wake-up."""
    made, start = 0, time.process_time()
    while made < decisions:
        now = turnstile.queue.next_at
        assert now is not None
        for turn in turnstile.due(now):
            turnstile.settle(turn, now, 1.0)
            turnstile.release(turn, now)
            turnstile.request(turn.scopes, now)
            made += 1
    return (time.process_time() - start) / made * 1e6


def replace(count: int, times: int) -> float:
    """Return microseconds of CPU per heapreplace, the least cost of any heap of all origins."""
    chance = random.Random(3)
    heap = [(chance.random(), number, object()) for number in range(count)]
    chance.shuffle(heap)
    heapq.heapify(heap)
    start = time.process_time()
    for number in range(count, count + times):
        when, _, value = heap[0]
        heapq.heapreplace(heap, (when + 1.0, number, value))
    return (time.process_time() - start) / times * 1e6


def memory(count: int) -> float:
    """Return bytes per origin."""
    keys = keys_of(count)
    gc.collect()
    tracemalloc.start()
    turnstile = crowded(keys)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(turnstile) == count
    return used / count


async def uncontended() -> float:
    """Return microseconds of CPU to acquire, settle and release a free turn, each of another origin, in a running loop."""
    pacer, keys = LocalPacer(SystemClock()), keys_of(1_000)
    start = time.process_time()
    for number in range(UNCONTENDED):
        turn = await pacer.acquire(keys[number % len(keys)])
        pacer.settle(turn, 0.0)
        pacer.release(turn)
    return (time.process_time() - start) / UNCONTENDED * 1e6


async def waiting_tasks() -> tuple[float, float]:
    """Return bytes per asyncio task that waits for one origin, and seconds of CPU to cancel all."""
    pacer = LocalPacer(SystemClock())
    await pacer.acquire(("busy",))
    gc.collect()
    tracemalloc.start()
    tasks = [asyncio.create_task(pacer.acquire(("busy",))) for _ in range(TASKS)]
    await asyncio.sleep(0)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    start = time.process_time()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return used / TASKS, time.process_time() - start


def verdict(good: bool) -> str:
    return "" if good else "  <- OVER"


def main() -> None:
    """Print the table; figures over their limits are marked."""
    print(f"{'origins':>9}  {'us/decision':>11}  {'heapreplace':>11}  {'ratio':>5}  {'B/origin':>8}")
    for size in SIZES:
        turnstile = crowded(keys_of(size))
        gc.collect()
        cost = min(decide(turnstile, DECISIONS) for _ in range(3))
        del turnstile
        bare = replace(size, DECISIONS)
        used = memory(size)
        good = cost <= MOST_US and used <= MOST_BYTES
        print(
            f"{size:>9,}  {cost:>11.2f}  {bare:>11.2f}  {cost / bare:>5.2f}  {used:>8.0f}{verdict(good)}",
            flush=True,
        )
    print(f"limits: {MOST_US} us per decision, {MOST_BYTES} bytes per origin (tracemalloc)")
    print(f"a free turn (acquire, settle, release, in a running loop): {asyncio.run(uncontended()):.2f} us")
    per_task, cancel_s = asyncio.run(waiting_tasks())
    good = per_task <= MOST_BYTES_PER_TASK and cancel_s <= MOST_CANCEL_S
    print(
        f"{TASKS:,} tasks waiting: {per_task:.0f} bytes each; all cancelled in {cancel_s:.2f} s{verdict(good)}"
    )


if __name__ == "__main__":
    main()
