"""`put` and its kin, each URL or key once, with checked options; and `next` and `until_waiting`, for a host with its own loop."""

import asyncio

import pytest

import polite
from polite.errors import InvalidOption
from polite.events import Dropped, Event
from polite.frontier.frontier import FrontierClosed
from polite.robots.exchange import Reply
from polite.task import Admission
from polite.testing import LoopClock
from tests.frontier.support import Opened, fetched_by_next, one_process
from tests.sitemaps.support import urlset
from tests.support import RULES, A, B, end_next, fetch_all, now, scripted_gate

WAITING, DUPLICATE = Admission.WAITING, Admission.DUPLICATE


async def test_a_url_is_put_once_however_it_is_spelt(opened: Opened) -> None:
    async with opened() as (frontier, _):
        first = await frontier.put(f"{A}/a/../b?q#x")
        second = await frontier.put("HTTPS://user@A.test:443/b?q")
    assert (first, second) == (WAITING, DUPLICATE)
    assert (bool(first), bool(second)) == (True, False)


async def test_a_url_that_was_done_is_put_again_only_when_asked(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        async with await anext(frontier):
            assert await frontier.put(A, again=True) is DUPLICATE
        assert await frontier.put(A) is DUPLICATE
        assert await frontier.put(A, again=True) is WAITING


@one_process
async def test_what_was_done_longest_ago_is_forgotten_first(opened: Opened) -> None:
    async with opened(max_done=2) as (frontier, _):
        for path in "123":
            await frontier.put(f"{A}/{path}")
            await end_next(frontier)
        assert await frontier.put_many([f"{A}/3", f"{A}/2", f"{A}/1"]) == [DUPLICATE, DUPLICATE, WAITING]


async def test_put_many_returns_an_admission_for_each_url_and_an_invalid_url_stops_no_other(opened: Opened):
    events: list[Event] = []
    async with opened(listener=events.append) as (frontier, _):
        admissions = await frontier.put_many([A, "http://u:secret@", f"{A}/"], depth=1)
    assert admissions == [WAITING, Admission.INVALID, DUPLICATE]
    (told,) = [event for event in events if isinstance(event, Dropped)]
    assert "secret" not in str(told)
    assert told.tries == 0


async def test_put_many_puts_what_an_async_iterator_gives_as_soon_as_it_comes(opened: Opened) -> None:
    given: list[int] = []

    async def found():
        for number in range(6):
            given.append(number)
            yield f"{A}/{number % 5}"
            await asyncio.sleep(60)

    async with opened(max_waiting=3) as (frontier, _):
        putting = asyncio.create_task(frontier.put_many(found(), depth=2))
        await asyncio.sleep(30)
        assert frontier.waiting == 1
        await asyncio.sleep(600)
        assert given == [0, 1, 2, 3]
        for _ in range(5):
            async with await anext(frontier) as permit:
                assert permit.task.depth == 2
                permit.report(status=200)

        assert await putting == [WAITING] * 5 + [DUPLICATE]


@one_process
async def test_a_task_is_not_given_out_before_its_time(opened: Opened) -> None:
    async with opened() as (frontier, _):
        wall = LoopClock().wall()
        await frontier.put(f"{A}/later", not_before=wall + 200)
        await frontier.put(f"{A}/late", not_before=wall + 100)
        await frontier.put(f"{A}/past", not_before=wall - 100)
        frontier.close()
        fetched: list[tuple[float, str]] = []
        await fetch_all(frontier, fetched)

    assert fetched == [(1.0, f"{A}/past"), (100.0, f"{A}/late"), (200.0, f"{A}/later")]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("priority", float("nan")),
        ("depth", "1"),
        ("deadline", float("inf")),
        ("not_before", True),
        # No file can hold it.
        *((each, 2**63) for each in ("priority", "depth", "not_before", "deadline")),
        ("priority", -(2**63)),
        *(("key", each) for each in ("", 1, b"k", "\ud800", "x" * 16_385)),
    ],
)
async def test_an_option_that_orders_nothing_or_that_no_file_can_hold_is_refused_and_hinders_no_other(
    opened, drained, option, value
):
    async with opened() as (frontier, _):
        with pytest.raises(InvalidOption, match=f"{option}="):
            await frontier.put(A, **{option: value})
        await frontier.put(A, priority=2**63 - 1)
        assert len(await drained(frontier)) == 1


async def test_put_many_refuses_an_option_that_put_does_not_have_and_one_url(opened: Opened) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(TypeError, match="put_many: prioritiy: no such option"):
            await frontier.put_many([f"{A}/1"], prioritiy=5)  # type: ignore[call-arg]
        with pytest.raises(InvalidOption, match="put takes one"):
            await frontier.put_many(A)
        assert frontier.waiting == 0


HTTP = "http://a.test"


async def test_two_keys_are_two_tasks_and_one_key_is_one(opened: Opened) -> None:
    async with opened() as (frontier, _):
        admissions = [
            await frontier.put(f"{A}/form", key="POST a=1"),
            await frontier.put(f"{A}/form", key="POST a=2"),
            await frontier.put(f"{A}/other", key="POST a=1"),
        ]
        tasks = await fetched_by_next(frontier)

        assert admissions == [WAITING, WAITING, DUPLICATE]
        assert [(task.url, task.key, task.unique) for task in tasks] == [
            (f"{A}/form", "POST a=1", True),
            (f"{A}/form", "POST a=2", True),
        ]
        assert await frontier.put(f"{A}/form", key="POST a=2") is DUPLICATE
        assert await frontier.put(f"{A}/form", key="POST a=2", again=True) is WAITING
        assert frontier.done == 2


async def test_a_key_is_compared_with_the_keys_of_its_origin_alone(opened: Opened) -> None:
    async with opened() as (frontier, _):
        keys = [(A, None), (A, f"{A}/"), (A, "/"), (B, "/"), (HTTP, "/"), (A, "/")]
        puts = [await frontier.put(f"{origin}/", key=key) for origin, key in keys]
        assert puts == [WAITING] * 5 + [DUPLICATE]
        assert sum(task.key == "/" for task in await fetched_by_next(frontier)) == 3


async def test_a_task_that_is_not_unique_is_never_a_duplicate(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(f"{A}/1")
        puts = [await frontier.put(f"{A}/1", unique=False, payload=number) for number in range(3)]
        puts += await frontier.put_many([f"{A}/1"] * 2, unique=False)
        puts.append(await frontier.put_nowait(f"{A}/1", unique=False))
        tasks = await fetched_by_next(frontier)

        assert puts == [WAITING] * 6
        assert [(task.unique, task.key) for task in tasks] == [(True, None), *[(False, None)] * 6]
        assert frontier.done == 7
        assert await frontier.put(f"{A}/1") is DUPLICATE
        # It is not remembered.
        await frontier.put(f"{A}/2", unique=False)
        await fetched_by_next(frontier)
        assert await frontier.put(f"{A}/2") is WAITING


async def test_a_put_that_may_not_wait_is_a_duplicate_or_overloaded(opened: Opened) -> None:
    async with opened(max_waiting=1) as (frontier, _):
        await frontier.put(f"{A}/1", key="k")
        assert await frontier.put(f"{A}/1", key="k", wait=False) is DUPLICATE
        with pytest.raises(polite.Overloaded):
            await frontier.put(f"{A}/1", unique=False, wait=False)
        with pytest.raises(polite.Overloaded):
            await frontier.put(f"{A}/1", key="other", wait=False)
        with pytest.raises(polite.Overloaded, match="max_waiting=1") as refusal:
            await frontier.put(f"{A}/2", wait=False)
        assert refusal.value.url == f"{A}/2"


async def test_each_way_back_keeps_key_and_tries(opened: Opened) -> None:
    async with opened(max_tries=5) as (frontier, _):
        await frontier.put(f"{A}/1", key="k")
        await frontier.put(f"{A}/1", unique=False)
        await frontier.put(f"{A}/1")
        seen = []
        for _ in range(6):
            async with await anext(frontier) as permit:
                seen.append((permit.task.key, permit.task.unique, permit.task.tries))
                permit.retry(after=50.0)
        for _ in range(3):
            unused = await anext(frontier)
            del unused
            await asyncio.sleep(1)
        last = [(task.key, task.unique, task.tries) for task in await fetched_by_next(frontier)]

    kinds = [(None, False), (None, True), ("k", True)]
    assert sorted(map(repr, seen)) == sorted(repr((*kind, tries)) for kind in kinds for tries in (0, 1))
    assert sorted(map(repr, last)) == sorted(repr((*kind, 2)) for kind in kinds)


async def test_a_key_of_a_task_that_is_not_unique_is_refused(opened: Opened) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(polite.InvalidOption, match="needs no key"):
            await frontier.put(A, key="k", unique=False)
        with pytest.raises(polite.InvalidOption, match="unique must be True or False"):
            frontier.put_nowait(A, unique=None)  # type: ignore[arg-type]
        for name in ("again", "wait"):
            with pytest.raises(polite.InvalidOption, match=f"{name} must be True or False"):
                await frontier.put_many([A], **{name: 1})
        with pytest.raises(TypeError, match="key"):
            await frontier.put_many([A], key="k")  # type: ignore[call-arg]


SITE = "https://example.com"
SCRIPT = {
    f"{SITE}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /private\n"),
    f"{SITE}/sitemap.xml": Reply(
        200,
        urlset(
            f"<loc>{SITE}/low</loc><priority>0.2</priority><lastmod>2026-01-01</lastmod>",
            f"<loc>{SITE}/usual</loc>",
            f"<loc>{SITE}/high</loc><priority>0.94</priority>",
            f"<loc>{SITE}/private/a</loc>",
            f"<loc>{SITE}/usual</loc>",
        ).encode(),
    ),
}


async def test_entries_become_tasks_in_the_order_of_their_priority():
    async with scripted_gate(SCRIPT, pacing=polite.PacingPolicy(min_delay=0)) as gate:
        frontier = polite.Frontier(gate, scheduler=polite.schedulers.Priority())
        put = await frontier.put_sitemaps(SITE, depth=3)
        tasks = await fetched_by_next(frontier)

    assert [(task.url, task.priority, task.depth) for task in tasks] == [
        (f"{SITE}/high", 0.9, 3),
        (f"{SITE}/usual", 0.5, 3),
        (f"{SITE}/low", 0.2, 3),
    ]
    assert put.waiting == 3
    assert put.admissions == {WAITING: 3, DUPLICATE: 1, Admission.REFUSED: 1, Admission.INVALID: 0}
    assert [(file.url, file.entries) for file in put.files] == [(f"{SITE}/sitemap.xml", 5)]


async def test_a_site_out_of_reach_raises():
    async with scripted_gate({f"{SITE}/robots.txt": Reply(503)}) as gate:
        with pytest.raises(polite.RobotsUnreachable):
            await polite.Frontier(gate).put_sitemaps(SITE)


async def test_next_returns_none_when_nothing_is_left_though_the_frontier_is_open(opened: Opened) -> None:
    async with opened() as (frontier, _):
        assert await frontier.next() is None

        await frontier.put(f"{A}/1")
        permit = await frontier.next()
        async with permit:
            waiting = asyncio.create_task(frontier.next())
            await asyncio.sleep(30)
            early = waiting.done()

        assert await waiting is None
        await frontier.put(f"{A}/2")
        assert [task.url for task in await fetched_by_next(frontier)] == [f"{A}/2"]

    assert not early


async def test_next_waits_while_a_task_may_be_retried(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(f"{A}/1")
        permit = await frontier.next()
        assert permit is not None
        other = asyncio.create_task(frontier.next())
        await asyncio.sleep(5)
        async with permit:
            permit.retry(after=50)
        again = await other

        assert (again.url, again.task.tries) == (f"{A}/1", 1)
        assert now() >= 55
        async with again:
            pass


async def test_next_raises_what_stopped_the_frontier(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put(f"{A}/1", not_before=2_000_000_000.0)
        asking = asyncio.create_task(frontier.next())
        await asyncio.sleep(1)
        await gate.close()

        with pytest.raises(polite.GateClosed):
            await asking
        with pytest.raises(polite.GateClosed):
            await frontier.next()
        with pytest.raises(polite.GateClosed):
            await frontier.until_waiting(5)


async def test_put_nowait_returns_a_future_of_the_admission(opened: Opened) -> None:
    async with opened({f"{A}/robots.txt": RULES}) as (frontier, gate):
        await gate.check(A)
        futures = [frontier.put_nowait(f"{A}/{path}", depth=3) for path in ("1", "1", "private")]
        assert await asyncio.gather(*futures) == [Admission.WAITING, Admission.DUPLICATE, Admission.REFUSED]
        permit = await frontier.next()
        assert permit.task.depth == 3


async def test_put_nowait_raises_at_once(opened: Opened) -> None:
    async with opened(max_waiting=1) as (frontier, _):
        with pytest.raises(polite.InvalidURL):
            frontier.put_nowait("http://")
        with pytest.raises(polite.InvalidOption, match="depth"):
            frontier.put_nowait(A, depth=float("nan"))  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            frontier.put_nowait(A, wait=True)  # type: ignore[call-arg]
        frontier.put_nowait(A)
        with pytest.raises(polite.Overloaded, match="max_waiting=1"):
            frontier.put_nowait(B)
        frontier.close()
        with pytest.raises(FrontierClosed):
            frontier.put_nowait(B)


async def test_until_waiting_returns_when_few_enough_tasks_wait(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put_many([f"{A}/{page}" for page in range(5)])
        waited = asyncio.create_task(frontier.until_waiting(2))
        frontier.close()
        left = []
        async for permit in frontier:
            async with permit:
                await asyncio.sleep(1)
                left.append((frontier.waiting, waited.done()))

    assert [done for waiting, done in left] == [waiting <= 2 for waiting, _ in left]
    assert {waiting for waiting, _ in left} == {0, 1, 2, 3, 4}
