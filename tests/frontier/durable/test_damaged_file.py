"""A frontier's file that is damaged, locked by a hand, or old: another content is never read from it, and nothing hangs."""

import asyncio
import random
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import polite
from polite import schedulers
from polite.events import SetAside
from polite.frontier.durable.batch import Batch, EndedTask, Mark, Put, Requeue, TaskState
from polite.frontier.sqlite.database import QueueFile
from polite.frontier.sqlite.schema import VERSION
from polite.origin import Target
from tests.support import scripted_gate

SECOND = Target.of("https://h1.test/2")

pytestmark = pytest.mark.virtual_time

TASKS = {f"https://h{n % 5}.test/page/{n}": {"n": n, "text": "x" * (n % 7)} for n in range(40)}


def frontier(gate: polite.Gate, path: Path) -> Any:
    return polite.open_frontier(gate, store=path, scheduler=schedulers.Priority(), max_active_origins=3)


def gate(**options: Any) -> Any:
    pacing = polite.PacingPolicy(min_delay=0.0)
    return scripted_gate(pacing=pacing, **options)


async def written(path: Path) -> None:
    async with gate() as opened, frontier(opened, path) as queue:
        for url, payload in TASKS.items():
            await queue.put(
                url, payload=payload, priority=payload["n"], not_before=5.0 if payload["n"] % 3 else None
            )
        async with await anext(queue) as permit:
            permit.retry()


async def crawled(path: Path) -> dict[str, tuple[Any, ...]]:
    """What comes out of the file. Raises StoreFailed, and TimeoutError when it stands still."""
    found: dict[str, tuple[Any, ...]] = {}
    async with gate() as opened, frontier(opened, path) as queue:
        queue.close()
        async with asyncio.timeout(1_000_000):
            async for permit in queue:
                async with permit:
                    task = permit.task
                    assert task.url not in found
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
async def test_a_damaged_file_fails_or_gives_what_was_put(seed: int, path: Path) -> None:
    await written(path)
    sound = path.read_bytes()
    whole = await crawled(path)
    draw, failed = random.Random(seed), 0

    for _ in range(25):
        path.write_bytes(damaged(sound, draw))
        try:
            found = await crawled(path)
        except polite.StoreFailed:
            failed += 1
        else:
            assert found.items() <= whole.items()
    assert len(whole) == len(TASKS)
    assert failed


def change_file(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(change)


ALL_BUT_THE_SEVENTH = {url for url, payload in TASKS.items() if payload["n"] != 6}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tasks SET path = '/page/x' WHERE number = 7",
        "UPDATE tasks SET payload = '{\"n\": 99}' WHERE number = 7",
        "UPDATE tasks SET tries = 2 WHERE number = 7",
        "UPDATE tasks SET priority = 'high' WHERE number = 7",
        "UPDATE tasks SET origin = 1 WHERE number = 7",
        "UPDATE tasks SET path = '/page/x', place = 1 WHERE number = 7",
    ],
)
async def test_a_damaged_row_of_a_task_is_set_aside_and_the_crawl_goes_on(
    path: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    await written(path)
    change_file(path, change)
    events: list[Any] = []

    async with gate(listener=events.append) as opened, frontier(opened, path) as queue:
        queue.close()
        async with asyncio.timeout(1_000_000):
            found = [permit.task.url async for permit in entered(queue)]
            await queue.join()
        counted = queue.done, queue.damaged, queue.waiting

    assert set(found) == ALL_BUT_THE_SEVENTH
    assert counted == (39, 1, 0)
    assert [event for event in events if isinstance(event, SetAside)] == [SetAside(str(path), 7)]
    assert "row 7 of tasks does not match its checksum; it was set aside" in caplog.text
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT number, place FROM tasks").fetchall() == [(7, TaskState.DAMAGED)]
    # It is counted in the next run, and told once only.
    caplog.clear()
    async with gate() as opened, frontier(opened, path) as queue:
        assert (queue.damaged, queue.waiting, caplog.text) == (1, 0, "")
        assert await queue.put("https://h1.test/new")


async def entered(queue: Any) -> AsyncIterator[Any]:
    async for permit in queue:
        async with permit:
            yield permit


async def test_a_file_with_very_many_damaged_rows_fails_as_a_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polite.frontier.sqlite.database._MOST_ASIDE", 20)
    await written(path)
    change_file(path, "UPDATE tasks SET tries = tries + 1")

    with pytest.raises(polite.StoreFailed, match="is corrupt .more than 20 rows do not match"):
        await crawled(path)


@pytest.mark.parametrize("where", ["out", "in memory"])
async def test_a_row_that_is_damaged_while_its_task_is_in_memory_fails(path: Path, where: str) -> None:
    async with gate() as opened, frontier(opened, path) as queue:
        await queue.put_many([f"https://h1.test/{number}" for number in range(60)])
        queue.close()
        permit = await anext(queue)
        number = permit.task.number if where == "out" else permit.task.number + 28
        backend = queue._parts.store.backend
        change = "UPDATE tasks SET path = '/x', place = 0 WHERE number = ?"
        await backend.run(lambda: backend.file._database._connection.execute(change, (number,)))
        with pytest.raises(polite.StoreFailed, match=rf"row {number} of tasks"):
            async with asyncio.timeout(1_000_000):
                async with permit:
                    permit.retry()
                async for _ in entered(queue):
                    pass

    assert await crawled(path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE origins SET text = 'https://h9.test' WHERE id = 2",
        "UPDATE origins SET crawl_delay = 0.1 WHERE id = 2",
        "UPDATE frontier SET waiting = 77",
        "DELETE FROM frontier",
    ],
)
async def test_a_row_that_does_not_match_its_checksum_is_named_and_the_file_left_as_it_is(
    path: Path, change: str
) -> None:
    await written(path)
    change_file(path, change)

    with pytest.raises(polite.StoreFailed, match=r"is corrupt .*match.* checksum.*: it was left where it is"):
        await crawled(path)
    assert path.exists()


async def test_tasks_that_are_counted_and_not_found_are_missed(path: Path) -> None:
    await written(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM tasks WHERE number IN (7, 8)")

    with pytest.raises(polite.StoreFailed, match="2 tasks should wait, and none is found"):
        await crawled(path)


@pytest.mark.parametrize(
    "number", [0, 1.0, -0.0, 0.5, -7.25, 2**53 + 1, 2.0**62, -(2.0**63), 2.0**63, 1e19, -1e300, 5e-324]
)
async def test_a_number_of_any_kind_matches_its_checksum_when_it_is_read_again(
    path: Path, number: float
) -> None:
    async with gate() as opened, frontier(opened, path) as queue:
        await queue.put("https://h.test/1", priority=number, deadline=float(number))
        await queue.put("https://h.test/2", not_before=min(float(number), 1e6))
        queue.close()

    found = await crawled(path)

    assert {url: values[1] for url, values in found.items()} == {
        "https://h.test/1": number,
        "https://h.test/2": 0,
    }


@pytest.mark.parametrize(
    ("then", "left"),
    [
        (Batch(marks={2: Mark(TaskState.IN_FLIGHT, SECOND)}), [(1, 0), (2, TaskState.DAMAGED), (3, 0)]),
        (Batch(marks={2: Mark(TaskState.READY, SECOND)}), [(1, 0), (2, TaskState.DAMAGED), (3, 0)]),
        (Batch(requeued=[Requeue(2, 1, None, SECOND)]), [(1, 0), (2, TaskState.DAMAGED), (3, 0)]),
        (Batch(ended=[EndedTask(2, "done", SECOND)]), [(1, 0), (3, 0)]),
    ],
)
def test_what_a_batch_says_of_a_row_that_is_set_aside_changes_no_count(
    path: Path, then: Batch, left: list[tuple[int, int]]
) -> None:
    file = QueueFile(path, order="fifo", tasks_per_origin=4, max_done=10)
    file.open(3)
    numbers = (1, 2, 3)
    file.apply(
        Batch(puts=[Put("https://h1.test", f"/{n}", 0, 0, None, None, None, False, None) for n in numbers])
    )
    with file._database.connected() as connection:
        connection.execute("UPDATE tasks SET tries = 9 WHERE number = 2")

    aside = file.apply(Batch(loads=[(1, 10)])).damaged
    file.apply(then)

    with file._database.connected() as connection:
        rows = connection.execute("SELECT number, place FROM tasks ORDER BY number").fetchall()
    file.close()
    assert (aside, rows) == ([2], left)
    assert file.open(3).waiting == 2
    file.close()


# An old file.


async def test_a_file_of_the_version_before_gets_its_checksums(path: Path) -> None:
    await written(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table, column in (
            ("tasks", "sum"),
            ("origins", "sum"),
            ("frontier", "sum"),
            ("frontier", "time"),
            ("tasks", "identity"),
        ):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.execute("PRAGMA user_version = 1")

    found = await crawled(path)

    assert {url: payload for url, (payload, *_) in found.items()} == TASKS
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert await crawled(path) == {}


async def test_a_file_from_before_tasks_had_keys_goes_on_with_the_same_checksums(path: Path) -> None:
    await written(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE tasks DROP COLUMN identity")
        connection.execute("PRAGMA user_version = 2")
        connection.execute("UPDATE tasks SET depth = 9 WHERE number = 2")

    found = await crawled(path)

    assert len(found) == len(TASKS) - 1
    async with gate() as opened, frontier(opened, path) as queue:
        assert queue.damaged == 1
        assert await queue.put("https://h1.test/page/1", key="k", payload=[]) is polite.Admission.WAITING
    assert len(await crawled(path)) == 1


async def test_a_changed_key_is_found(path: Path) -> None:
    async with gate() as opened, frontier(opened, path) as queue:
        await queue.put("https://h1.test/1", key="k")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE tasks SET identity = '=l'")

    assert await crawled(path) == {}
    async with gate() as opened, frontier(opened, path) as queue:
        assert queue.damaged == 1


# The lock.


def another_process(path: Path) -> str:
    code = (
        "import sys; from pathlib import Path; from polite.frontier.sqlite import database as queue; queue.BUSY_TIMEOUT_S = 0.05\n"
        "file = queue.QueueFile(Path(sys.argv[1]), order='fifo', tasks_per_origin=4, max_done=10)\n"
        "try:\n    file.open(3); print('opened')\nexcept Exception as error: print(error)\nfinally: file.close()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow("starts processes")
def test_a_file_that_its_process_opens_and_closes_by_hand_stays_locked(path: Path, tmp_path: Path) -> None:
    file = QueueFile(path, order="fifo", tasks_per_origin=4, max_done=10)
    file.open(3)
    path.read_bytes()
    Path(f"{path}-lock").read_bytes()
    (tmp_path / "other.sqlite").symlink_to(path)

    in_use = another_process(path), another_process(tmp_path / "other.sqlite")
    file.close()

    assert all("another frontier" in answer for answer in in_use)
    assert another_process(path) == "opened\n"
    assert not Path(f"{path}-lock").exists()


def test_a_lock_that_a_killed_process_left_is_no_hindrance(path: Path) -> None:
    Path(f"{path}-lock").touch()

    assert another_process(path) == "opened\n"
