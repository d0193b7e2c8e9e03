"""`put` and `put_many`: each URL once, checked options, and a time before which a task may not go."""

import asyncio
from typing import Any

import pytest

from polite.errors import InvalidOption
from polite.events import Dropped, Event
from polite.task import Admission
from polite.testing import LoopClock
from tests.frontier.support import Drained, Opened, one_process
from tests.support import RULES, A, fetch_all

pytestmark = pytest.mark.virtual_time


async def test_a_url_is_put_once_however_it_is_spelt(opened: Opened) -> None:
    async with opened() as (frontier, _):
        first = await frontier.put(f"{A}/a/../b?q#x")
        second = await frontier.put("HTTPS://user@A.test:443/b?q")

    assert (first, second) == (Admission.WAITING, Admission.DUPLICATE)
    assert (bool(first), bool(second)) == (True, False)


async def test_a_url_that_was_done_is_put_again_only_when_asked(opened: Opened) -> None:
    async with opened() as (frontier, _):
        await frontier.put(A)
        async with await anext(frontier):
            assert await frontier.put(A, again=True) is Admission.DUPLICATE

        assert await frontier.put(A) is Admission.DUPLICATE
        assert await frontier.put(A, again=True) is Admission.WAITING


@one_process
async def test_what_was_done_longest_ago_is_forgotten_first(opened: Opened) -> None:
    async with opened(frontier={"max_done": 2}) as (frontier, _):
        for path in "123":
            await frontier.put(f"{A}/{path}")
            async with await anext(frontier):
                pass

        assert await frontier.put_many([f"{A}/3", f"{A}/2", f"{A}/1"]) == [
            Admission.DUPLICATE,
            Admission.DUPLICATE,
            Admission.WAITING,
        ]


async def test_put_returns_a_refusal_that_is_known(opened: Opened) -> None:
    async with opened({f"{A}/robots.txt": RULES}) as (frontier, gate):
        await gate.check(A)

        assert await frontier.put(f"{A}/private") is Admission.REFUSED
        assert frontier.waiting == 0
        await frontier.join()


async def test_put_many_returns_an_admission_for_each_url_and_an_invalid_url_stops_no_other(
    opened: Opened,
) -> None:
    events: list[Event] = []

    async with opened(listener=events.append) as (frontier, _):
        admissions = await frontier.put_many([A, "http://u:secret@", f"{A}/"], depth=1)

    assert admissions == [Admission.WAITING, Admission.INVALID, Admission.DUPLICATE]
    (told,) = [event for event in events if isinstance(event, Dropped)]
    assert "secret" not in str(told)
    assert told.tries == 0


async def test_put_many_lets_others_run(opened: Opened) -> None:
    async with opened() as (frontier, _):
        steps = 0

        async def count() -> None:
            nonlocal steps
            # Not for ever: the thread of a file would wait for the interpreter at each of its own steps.
            for _ in range(4):
                steps += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await frontier.put_many(f"{A}/{n}" for n in range(2_000))
        counting.cancel()

    assert steps == 4


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


async def test_put_many_cut_short_by_its_urls_counts_those_before_as_they_are(opened: Opened) -> None:
    def urls() -> Any:
        yield f"{A}/1"
        yield f"{A}/2"
        yield f"{A}/1"
        raise ZeroDivisionError("the crawler's own")

    async with opened() as (frontier, _):
        for _each in range(2):
            with pytest.raises(ZeroDivisionError):
                await frontier.put_many(urls())

            assert frontier.waiting == 2


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
    ],
)
async def test_a_number_that_orders_nothing_or_that_no_file_can_hold_is_refused_and_hinders_no_other(
    opened: Opened, drained: Drained, option: str, value: Any
) -> None:
    async with opened() as (frontier, _):
        with pytest.raises(InvalidOption, match=option):
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
