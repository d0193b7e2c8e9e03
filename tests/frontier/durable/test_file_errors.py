"""The file of a frontier fails, or is the file of another program: the error is clear, and nothing acknowledged is lost."""

import asyncio
import sqlite3
from contextlib import closing, nullcontext, suppress

import pytest

import polite
from polite.frontier.durable.backend import Batch, Put
from polite.frontier.sqlite.queue_file import QueueFile
from polite.frontier.task_store import draft_of
from polite.origin import Target
from polite.task import Admission
from tests.frontier.durable.support import connection_of, in_its_thread, opened, task_store
from tests.support import A, B, scripted_gate

pytestmark = pytest.mark.virtual_time


def fill_the_disk(frontier):
    connection = connection_of(frontier)
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_file_serves_one_frontier_at_a_time(path, monkeypatch):
    monkeypatch.setattr("polite.frontier.sqlite.queue_file.BUSY_TIMEOUT_S", 0.01)
    async with opened(path) as first:
        with pytest.raises(polite.StoreFailed, match=r"queue\.sqlite: another frontier"):
            async with opened(path):
                pass
        await first.put(A)


async def of_a_gate(path):
    async with polite.open_gate("TestBot/1.0", store=path):
        pass


async def of_another_program(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")


async def corrupt(path):
    path.write_bytes(b"nonsense " * 1_000)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (of_a_gate, r"keeps robots\.txt results of a gate"),
        (of_another_program, "another program"),
        (corrupt, "is corrupt .*: it was left where it is"),
    ],
)
async def test_a_file_of_something_else_is_named_and_left_where_it_is(path, made, said):
    await made(path)
    before = path.read_bytes()
    with pytest.raises(polite.StoreFailed, match=said):
        async with opened(path):
            pass
    assert path.read_bytes() == before


async def test_a_folder_that_is_not_there_is_named(path):
    with pytest.raises(polite.StoreFailed, match="is there such a folder"):
        async with opened(path / "deeper" / "queue.sqlite"):
            pass


async def test_a_task_in_flight_learns_of_a_disk_that_fills_while_it_drains(path):
    async with opened(path) as frontier:
        await frontier.put(A)
        async with await anext(frontier):
            draining = asyncio.create_task(frontier.drain())
            await asyncio.sleep(0)
            await in_its_thread(frontier, lambda: fill_the_disk(frontier))
            with pytest.raises(polite.StoreFailed, match="the disk is full"):
                await frontier.put_many(f"{A}/{number}" + "x" * 1_000 for number in range(10_000))
            async with asyncio.timeout(10):
                with pytest.raises(polite.StoreFailed):
                    await frontier.put(B)
        assert await draining == []


async def test_what_is_in_flight_when_the_block_is_left_though_it_drains_waits_for_no_closed_file(path):
    async with scripted_gate() as gate:
        async with polite.open_frontier(gate, store=path) as frontier:
            await frontier.put(A)
            permit = await (await anext(frontier)).enter()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(30):
                    await frontier.drain()
        async with asyncio.timeout(100):
            with pytest.raises(polite.FrontierClosed):
                await frontier.put(B)
            with pytest.raises(polite.StoreFailed, match="its store is closed"):
                await task_store(frontier).flush()
        permit.leave()


async def test_a_full_disk_fails_loudly_for_all_and_loses_nothing_acknowledged(path):
    acknowledged: list[str] = []
    async with opened(path) as frontier:
        await frontier.put(f"{A}/0", not_before=5e9)
        worker = asyncio.create_task(frontier.join())
        await in_its_thread(frontier, lambda: fill_the_disk(frontier))
        with pytest.raises(polite.StoreFailed, match=r"queue\.sqlite: the disk is full"):
            for number in range(100_000):
                await frontier.put(f"{B}/{number}" + "x" * 500, not_before=5e9)
                acknowledged.append(f"{B}/{number}" + "x" * 500)
        for waiting in (worker, anext(frontier), frontier.put(f"{A}/more"), frontier.put_many([A])):
            with pytest.raises(polite.StoreFailed):
                await waiting
        await frontier.drain()

    async with opened(path) as frontier:
        assert frontier.waiting == len(acknowledged) + 1
        assert set(await frontier.put_many(acknowledged)) == {Admission.DUPLICATE}


@pytest.mark.parametrize("stopped", [False, True])
async def test_a_worker_whose_permit_could_not_be_written_down_gets_the_error(path, monkeypatch, stopped):
    def broken(*_):
        error = sqlite3.DatabaseError("malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    def told():
        return pytest.raises(polite.StoreFailed, match="is corrupt .malformed.: it was left where it is")

    with told() if stopped else nullcontext():
        async with opened(path) as frontier:
            await frontier.put(f"{A}/1")
            await asyncio.sleep(5)
            monkeypatch.setattr(task_store(frontier).backend.file, "_applied", broken)
            worker = asyncio.create_task(anext(frontier))
            while not frontier.in_flight:
                await asyncio.sleep(0)
            if stopped:
                frontier.stop()
            with told():
                await worker

            assert frontier.in_flight == 0


@pytest.mark.parametrize("end", ["close", "stop", "drain"])
async def test_what_cannot_be_written_at_the_end_is_raised_as_the_block_is_left(path, end):
    def full(_):
        raise polite.StoreFailed("the disk is full")

    with pytest.raises(polite.StoreFailed, match="the disk is full"):
        async with opened(path) as frontier:
            await frontier.put(f"{A}/1")
            async with await anext(frontier):
                task_store(frontier).backend.file.apply = full
            ended = getattr(frontier, end)()
            assert await ended == [] if end == "drain" else ended is None
            with suppress(polite.StoreFailed):
                await task_store(frontier).flush()


async def test_a_defect_is_raised_to_all(path, monkeypatch):
    async with opened(path) as frontier:
        monkeypatch.setattr(task_store(frontier).backend.file, "_call", lambda *_: 1 / 0)
        putting = [asyncio.create_task(frontier.put(f"{A}/{n}")) for n in range(3)]
        results = await asyncio.gather(*putting, frontier.join(), return_exceptions=True)
    assert {type(result) for result in results} == {ZeroDivisionError}


@pytest.mark.parametrize("store", ["", ":memory:", "a\0b", 7, b"queue.sqlite"])
async def test_what_is_no_file_is_refused(store):
    with pytest.raises(polite.InvalidOption, match="store="):
        async with opened(store):
            pass


def test_a_batch_that_fails_leaves_the_counts_as_they_were(path):
    file = QueueFile(path, order="fifo", tasks_per_origin=4, max_done=10)
    file.open(3)
    put = Put(Target.of(f"{A}/1"), draft_of(), again=False, ready_at=None)

    with pytest.raises(TypeError):
        file.apply(Batch(now=1.0, puts=[put], seen=[None]))  # type: ignore[list-item]
    answers = file.apply(Batch(now=1.0, puts=[put]))
    file.close()

    assert answers.puts == [1]
