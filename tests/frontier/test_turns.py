"""Turns that the pacer cannot give: it is overloaded, closed, or has only `acquire`; scopes that raise."""

import pytest

import polite
from polite.events import Event, OriginPostponed
from tests.frontier.support import Drained, Opened, turns_of
from tests.support import A, fetch_all

pytestmark = pytest.mark.virtual_time


async def test_a_pacer_that_closes_by_itself_ends_the_frontier(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many([f"{A}/{n}" for n in range(3)])
        async with await anext(frontier):
            pass
        await turns_of(gate).pacer.close()

        with pytest.raises(polite.GateClosed):
            await anext(frontier)


async def test_scopes_that_cannot_be_worked_out_end_the_frontier_with_their_error(
    opened: Opened, drained: Drained, caplog: pytest.LogCaptureFixture
) -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        if target.path == "/1":
            raise ZeroDivisionError("no scope")
        return (target.origin,)

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (frontier, _):
        await frontier.put_many([f"{A}/1", f"{A}/2"])

        with pytest.raises(ZeroDivisionError, match="no scope"):
            await anext(frontier)

        assert len(await drained(frontier)) == 2
    assert "the frontier failed" in caplog.text


@pytest.mark.parametrize("known", [True, False])
async def test_an_overloaded_gate_is_asked_again(opened: Opened, known: bool) -> None:
    """`known`: the rules are known, and only turns are requested."""
    events: list[Event] = []
    pacing = polite.PacingPolicy(max_waiting=1)
    urls = [f"https://host{n}.test/{page}" for n in range(4) for page in range(2)]

    async with opened(pacing=pacing, listener=events.append) as (frontier, gate):
        if known:
            for url in urls:
                await gate.check(url)
        await frontier.put_many(urls)
        frontier.close()
        fetched = await fetch_all(frontier)

    assert sorted(fetched) == urls
    assert any("max_waiting" in event.because for event in events if isinstance(event, OriginPostponed))
