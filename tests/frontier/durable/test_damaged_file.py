"""A frontier's file that is damaged or old: nothing hangs, and what fails is said."""

import asyncio
import random
import sqlite3
from contextlib import closing

import pytest

import polite
from polite import schedulers
from tests.frontier.durable.support import opened as opened_in_file

pytestmark = pytest.mark.virtual_time

TASKS = {f"https://h{n % 5}.test/page/{n}": {"n": n, "text": "x" * (n % 7)} for n in range(40)}


def opened(path):
    pacing = polite.PacingPolicy(min_delay=0.0)
    return opened_in_file(path, pacing=pacing, scheduler=schedulers.Priority(), max_active_origins=3)


async def written(path):
    async with opened(path) as queue:
        for url, payload in TASKS.items():
            await queue.put(
                url, payload=payload, priority=payload["n"], not_before=5.0 if payload["n"] % 3 else None
            )
        async with await anext(queue) as permit:
            permit.retry()


async def crawled(path):
    """What comes out of the file. Raises StoreFailed, and TimeoutError when it stands still."""
    found = {}
    async with opened(path) as queue:
        queue.close()
        async with asyncio.timeout(1_000_000):
            async for permit in queue:
                async with permit:
                    task = permit.task
                    found[task.url] = (task.payload, task.priority, task.not_before, task.tries)
    return found


def damaged(whole: bytes, draw: random.Random) -> bytes:
    octets = bytearray(whole)
    for _ in range(draw.choice([1, 1, 1, 3])):
        at = draw.randrange(100, len(octets))
        octets[at] ^= 1 << draw.randrange(8)
    if draw.random() < 0.1:
        at = draw.randrange(100, len(octets))
        octets[at : at + 512] = bytes(len(octets[at : at + 512]))
    return bytes(octets)


@pytest.mark.slow("many seeds", fast=2)
@pytest.mark.parametrize("seed", [*range(8), *range(9, 13)])
async def test_a_damaged_file_fails_as_a_store_or_is_crawled_to_its_end(seed, path):
    await written(path)
    sound = path.read_bytes()
    draw, failed = random.Random(seed), 0

    for _ in range(25):
        path.write_bytes(damaged(sound, draw))
        try:
            await crawled(path)
        except polite.StoreFailed:
            failed += 1
    assert failed


async def test_a_file_of_another_version_is_refused_with_a_way_on(path):
    await written(path)
    for version, age in ((3, "an older"), (9, "a newer")):
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")

        with pytest.raises(
            polite.StoreFailed, match=f"by {age} polite .*: finish the crawl with that one, or"
        ):
            await crawled(path)


async def test_tasks_that_are_counted_and_not_found_are_missed(path):
    await written(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM tasks WHERE number IN (7, 8)")
    with pytest.raises(polite.StoreFailed, match="2 tasks should wait, and none is found"):
        await crawled(path)
