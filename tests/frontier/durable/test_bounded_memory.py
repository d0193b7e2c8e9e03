"""A frontier in a file holds a limited number of tasks and origins in memory, and every task is given out."""

import asyncio
import random
import sqlite3
from contextlib import closing
from typing import Any, get_args

import pytest

import polite
from polite import schedulers
from polite.events import Event, OriginPostponed
from polite.frontier.durable.active_origins import MAX_IN_MEMORY, TASKS_PER_ORIGIN
from polite.frontier.durable.backend import Note
from polite.frontier.sqlite import schema, seen
from polite.frontier.sqlite.schema import SQL_KEYS
from polite.frontier.sqlite.seen import SeenInFile, fingerprint
from polite.frontier.task_store import draft_of
from polite.robots.exchange import Reply
from polite.task import Admission
from polite.testing import LoopClock
from tests.frontier.durable.support import fetch, in_memory, opened, task_store, urls_of
from tests.support import RULES, A, B, end_next, fetch_all, scripted_gate

pytestmark = pytest.mark.virtual_time


async def test_only_the_first_tasks_of_an_origin_are_in_memory(path):
    async with opened(path) as frontier:
        await frontier.put(f"{A}/0")
        await frontier.put_many(f"{B}/{n}" for n in range(5))
        await asyncio.sleep(10)
        await frontier.put_many(f"{A}/{n}" for n in range(1, 600))
        held = len(in_memory(frontier)[A].in_memory)
        frontier.close()
        fetched = await urls_of(frontier)

    assert held <= TASKS_PER_ORIGIN
    assert [url for url in fetched if url.startswith(A)] == [f"{A}/{n}" for n in range(600)]
    assert len(fetched) == 605


async def test_a_flood_of_puts_is_written_in_parts_so_that_no_step_of_the_loop_is_long(path):
    sizes: list[int] = []
    async with opened(path) as frontier:
        store = task_store(frontier)
        apply = store.backend.file.apply
        store.backend.file.apply = lambda batch: (sizes.append(len(batch.puts)), apply(batch))[1]
        put = [frontier.put_nowait(f"https://h{n % 7}.test/{n}") for n in range(1_700)]
        assert set(await asyncio.gather(*put)) == {Admission.WAITING}
        assert frontier.waiting == 1_700

    assert (max(sizes), sum(sizes)) == (500, 1_700)


async def test_a_flood_of_better_tasks_leaves_memory_bounded_and_loses_nothing(path):
    async with opened(path, scheduler=schedulers.Priority()) as frontier:
        await frontier.put(f"{A}/first")
        await asyncio.sleep(5)
        for number in range(600):
            await frontier.put(f"{A}/{number}", priority=number)
        held = len(in_memory(frontier)[A].in_memory)
        frontier.close()
        fetched = await urls_of(frontier)

    assert held == MAX_IN_MEMORY
    assert sorted(fetched) == sorted([f"{A}/first", *(f"{A}/{n}" for n in range(600))])


async def test_only_so_many_origins_are_in_memory_and_all_have_their_turn(path):
    most = 0
    async with opened(path, max_active_origins=3) as frontier:
        await frontier.put_many(f"https://big{n % 3}.test/{n}" for n in range(450))
        await frontier.put_many(f"https://host{n % 20}.test/{n}" for n in range(60))
        frontier.close()
        fetched = []
        async for permit in frontier:
            async with permit:
                most = max(most, len(in_memory(frontier)))
                fetched.append(permit.url)
                permit.report(status=200)

    assert (most, len(fetched)) == (3, 510)
    # The large origins, put first, left memory after a batch of tasks: their tasks come last.
    assert all("big" in url for url in fetched[-200:])


async def test_an_unreachable_origin_leaves_its_slot_in_memory_to_another(path):
    events: list[Event] = []
    script = {f"{A}/robots.txt": [Reply(500), Reply(500), RULES]}
    async with opened(path, script, max_active_origins=1, listener=events.append) as frontier:
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{B}/1"])
        frontier.close()
        fetched = await fetch(frontier)

    put_off = [event for event in events if isinstance(event, OriginPostponed)]
    assert ([url for _, url in fetched], len(put_off)) == ([f"{B}/1", f"{A}/1", f"{A}/2"], 2)
    assert fetched[0][0] < put_off[0].for_s
    assert fetched[1][0] >= put_off[0].for_s + put_off[1].for_s


async def test_many_tasks_whose_time_comes_at_once_all_come(path):
    clock = LoopClock()
    async with opened(path, clock=clock) as frontier:
        await frontier.put_many(
            (f"https://host{n % 500}.test/{n}" for n in range(3_000)), not_before=clock.wall() + 50
        )
        await frontier.put(f"{A}/now")
        frontier.close()
        fetched: list[tuple[float, str]] = []
        await asyncio.gather(*(fetch_all(frontier, fetched) for _ in range(600)))

    assert len(fetched) == 3_001
    assert min(at for at, url in fetched if "host" in url) >= 50.0
    # Two gaps of a second after robots.txt's, and so on: as fast as may be.
    assert max(at for at, _ in fetched) == pytest.approx(50.0 + 6.0)


async def test_a_page_ends_in_the_file_with_the_links_that_were_put_before_its_end(path):
    async with opened(path) as frontier:
        await frontier.put(A)
        permit, file = await anext(frontier), task_store(frontier).backend.file
        parts: list[tuple[int, int, int]] = []

        def note_part(batch: Any, apply: Any = file.apply) -> Any:
            parts.append((len(batch.puts), len(batch.ended), len(batch.notes)))
            return apply(batch)

        file.apply = note_part
        async with permit:
            for number in range(1_700):
                frontier.put_nowait(f"https://b.test/{number}")
        task_store(frontier).note(Note("a", "failed", "1"))
        await task_store(frontier).flush()

        assert parts == [(500, 0, 0), (500, 0, 0), (500, 0, 0), (200, 1, 1)]


async def test_what_ended_before_a_flood_of_puts_is_written_before_it(path):
    async with opened(path) as frontier:
        await frontier.put(A)
        await end_next(frontier)
        again = [frontier.put_nowait(f"{A}?{number}") for number in range(600)]
        again.append(frontier.put_nowait(A, again=True))
        assert [await each for each in again] == [Admission.WAITING] * 601


async def test_a_url_that_ended_after_a_flood_of_puts_may_be_put_again_though_the_queue_is_full(path):
    async with opened(path, max_waiting=601) as frontier:
        await frontier.put(A)
        permit = await anext(frontier)
        for number in range(600):
            frontier.put_nowait(f"{A}?{number}")
        async with permit:
            frontier.put_nowait(f"{A}?last")
        with pytest.raises(polite.Overloaded):
            await frontier.put(A, again=True, wait=False)


def with_order(order: Any) -> schedulers.Fifo:
    scheduler = schedulers.Fifo()
    scheduler.order = order
    return scheduler


async def test_the_order_may_be_another_in_the_next_run(path):
    async with opened(path, scheduler=schedulers.Deadline()) as first:
        for number in range(100):
            await first.put(f"{A}/{number}", priority=number * 37 % 100, depth=number * 11 % 100)
    async with opened(path, scheduler=schedulers.Priority()) as second:
        best = await urls_of(second, 3)
    async with opened(path, scheduler=schedulers.BreadthFirst()) as third:
        nearest = await urls_of(third, 3)

    assert best == [f"{A}/{n}" for n in sorted(range(100), key=lambda n: -(n * 37 % 100))[:3]]
    assert nearest == [f"{A}/{n}" for n in sorted(range(100), key=lambda n: n * 11 % 100)[:3]]


@pytest.mark.parametrize(
    ("scheduler", "options"),
    [
        (schedulers.Priority, [{"priority": -n} for n in range(400)]),
        (schedulers.BreadthFirst, [{"depth": n} for n in range(400)]),
        (schedulers.Deadline, [{"deadline": 1e9 + n} for n in range(399)] + [{}]),
        (schedulers.Fifo, None),
    ],
)
async def test_an_origins_tasks_come_in_the_schedulers_order_however_many_they_are(path, scheduler, options):
    count = 400
    order = [number * 171 % count for number in range(count)]
    async with opened(path, scheduler=scheduler()) as first:
        for number in order:
            await first.put(f"{A}/{number}", **(options[number] if options else {}))
    async with opened(path, scheduler=scheduler()) as second:
        second.close()
        fetched = await urls_of(second)

    expected = range(count) if options else order
    assert fetched == [f"{A}/{number}" for number in expected]


async def test_what_is_put_late_and_matters_most_goes_first(path):
    async with opened(path, scheduler=schedulers.Priority()) as first:
        await first.put_many((f"{A}/{n}" for n in range(200)), priority=1)
    async with opened(path, scheduler=schedulers.Priority()) as second:
        await fetch(second, 3)
        await second.put(f"{A}/best", priority=2)
        await second.put(f"{A}/last", priority=0)
        second.close()
        fetched = await urls_of(second)

    assert (fetched[0], fetched[-1]) == (f"{A}/best", f"{A}/last")


async def test_the_best_origin_and_the_one_that_has_waited_longest_become_active_in_turns(path):
    async with opened(path, scheduler=schedulers.Priority(), max_active_origins=1) as frontier:
        for number in range(6):
            await frontier.put(f"https://h{number}.test/", priority=number)
        frontier.close()
        assert [url[9] for url in await urls_of(frontier)] == ["0", "5", "1", "4", "2", "3"]


@pytest.mark.parametrize("order", get_args(schedulers.FileOrder))
def test_the_key_in_sql_is_the_key_in_python(order: schedulers.FileOrder) -> None:
    draw = random.Random(1)
    drafts = [
        draft_of(draw.uniform(-9, 9), draw.randrange(9), None, draw.choice([None, draw.random()]))
        for _ in range(20)
    ]
    query = f"SELECT {SQL_KEYS[order] or 0} FROM (SELECT ? AS priority, ? AS depth, ? AS deadline)"  # noqa: S608 - the words are ours

    with closing(sqlite3.connect(":memory:")) as database:
        found = [
            database.execute(query, (draft.priority, draft.depth, draft.deadline)).fetchone()[0]
            for draft in drafts
        ]

    assert found == [schedulers.ORDERS[order](draft) for draft in drafts]
    assert set(SQL_KEYS) == set(schedulers.ORDERS) == set(get_args(schedulers.FileOrder))


async def test_an_order_that_no_file_knows_is_refused(path):
    with pytest.raises(polite.InvalidOption, match=r"Fifo\.order='alphabet'"):
        async with opened(path, scheduler=with_order("alphabet")):
            pass


async def test_a_scheduler_that_names_no_order_gets_tasks_as_they_were_put(path):
    class Own:
        def __init__(self) -> None:
            inner = schedulers.Fifo()
            self.add, self.ready, self.next = inner.add, inner.ready, inner.next

    async with opened(path, scheduler=Own()) as frontier:
        await frontier.put_many(f"{A}/{n}" for n in range(50))

        assert await urls_of(frontier, 50) == [f"{A}/{n}" for n in range(50)]


# Fingerprints in generations: whatever was merged, and however often the file was opened again, the same URLs are known.

MAX_DONE = 60


@pytest.fixture(params=[False, True], ids=["narrow", "wide"])
def file(request):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.make(connection, "fifo", wide=request.param)
        yield connection


def remembered(file: sqlite3.Connection) -> int:
    """How many URLs are done, by what the file says: the newest word of each counts."""
    words = dict(file.execute("SELECT fingerprint, done FROM seen"))
    words.update(file.execute("SELECT fingerprint, done FROM lately ORDER BY rowid"))
    return sum(done is not None for done in words.values())


@pytest.mark.parametrize("seed", range(4))
def test_urls_are_known_as_long_as_tasks_have_them_or_they_ended_late(seed: int, file, monkeypatch):
    monkeypatch.setattr(seen, "_GENERATION", 1_000)
    draw, state = random.Random(seed), schema.State()
    known, held, ends = SeenInFile(file, state, MAX_DONE), set[seen.Fingerprint](), 0
    ended_at: dict[seen.Fingerprint, int] = {}

    for step in range(9_000):
        number, again = draw.randrange(-150, 150) << 55, draw.random() < 0.2
        url = (number << 64).to_bytes(16, "big", signed=True) if known.wide else number
        late = url in ended_at and ended_at[url] > ends - MAX_DONE
        duplicate = url in held or (late and not again)
        assert known.knows(state, url, again=again) == duplicate
        if draw.random() < 0.5:
            assert known.hold(state, url, again=again) != duplicate
            if not duplicate:
                held.add(url)
                ended_at.pop(url, None)
        elif held:
            url = draw.choice(sorted(held))
            held.remove(url)
            ends += 1
            ended_at[url] = ends
            known.finish(state, url)
        if draw.random() < 0.3:
            known.write(state)
        if step % 700 == 699:
            known.write(state)
            known = SeenInFile(file, state, MAX_DONE)
    known.write(state)

    (merged,) = file.execute("SELECT count(*) FROM seen").fetchone()
    assert merged > 70
    assert state.sequence == ends
    assert state.remembered == remembered(file)


def test_what_is_forgotten_leaves_the_file(file: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "_GENERATION", 40)
    state = schema.State()
    known = SeenInFile(file, state, MAX_DONE)

    for number in range(5_000):
        known.hold(state, fingerprint(f"/{number}", wide=known.wide), again=False)
        known.finish(state, fingerprint(f"/{number}", wide=known.wide))
        known.write(state)

    kept = [len(file.execute(query).fetchall()) for query in ("SELECT 1 FROM seen", "SELECT 1 FROM lately")]
    assert kept[0] < MAX_DONE + 3 * 40
    assert kept[1] < 10 * 40
    assert MAX_DONE <= state.remembered == remembered(file) < MAX_DONE + 4 * 40


def test_fingerprints_differ_by_text() -> None:
    for wide in (False, True):
        some = [
            fingerprint(text, wide=wide)
            for text in ("https://a.test/a", "https://b.test/a", "https://a.test\n=k")
        ]
        assert len(set(some)) == 3
        assert isinstance(some[0], bytes) is wide


async def test_a_file_with_wide_fingerprints_keeps_them(tmp_path):
    wide, narrow = tmp_path / "wide.sqlite", tmp_path / "narrow.sqlite"
    for path, options in ((wide, {"wide_fingerprints": True}), (wide, {}), (narrow, {})):
        async with scripted_gate() as gate, polite.open_frontier(gate, store=path, **options) as frontier:
            found = await frontier.put("https://a.test/1")
        with closing(sqlite3.connect(path)) as connection:
            assert schema.is_wide(connection) is (path == wide)
        assert (found is Admission.DUPLICATE) is (path == wide and not options)
    async with scripted_gate() as gate:
        with pytest.raises(polite.StoreFailed, match="without wide_fingerprints"):
            async with polite.open_frontier(gate, store=narrow, wide_fingerprints=True):
                pass
        with pytest.raises(polite.InvalidOption, match="needs a file"):
            async with polite.open_frontier(gate, wide_fingerprints=True):
                pass


def test_a_vacuum_while_generations_merge_forgets_nothing(file, monkeypatch):
    monkeypatch.setattr(seen, "_GENERATION", 1_000)
    state, urls = schema.State(), []
    known = SeenInFile(file, state, MAX_DONE)
    while not (len(urls) > 2_500 and 100 < state.merged < 200):
        urls.append(fingerprint(f"/{len(urls)}", wide=known.wide))
        known.hold(state, urls[-1], again=False)
        known.write(state)

    file.execute("VACUUM")

    known = SeenInFile(file, state, MAX_DONE)
    assert all(known.knows(state, url, again=False) for url in urls)
