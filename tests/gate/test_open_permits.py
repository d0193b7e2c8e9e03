"""A task never waits for a turn that it holds itself, in whatever order its permits are left; and what is left is freed."""

import asyncio
import gc

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import Names
from tests.support import scripted_gate

# Less than PacingPolicy.max_hold, after which a turn is taken back.
PATIENCE_S = 3_000.0
EXPIRING = Reply(200, b"User-agent: *\nDisallow: /private\n", cache_control="no-cache")
TO_HTTPS = Reply(301, location="https://h0.test/robots.txt")
WHOLE_CRAWL = polite.PacingPolicy(scopes=polite.Scopes(crawl=polite.ScopeLimit(1.0)))


def host(number: int) -> str:
    return f"https://h{number}.test/page"


async def entered(gate, number):
    return await gate.permit(host(number)).__aenter__()


async def leave(permit):
    await permit.__aexit__(None, None, None)


async def test_a_permit_left_before_an_inner_one_hides_none_of_the_others() -> None:
    async with scripted_gate() as gate, asyncio.timeout(PATIENCE_S):
        first, second = await entered(gate, 0), await entered(gate, 1)
        await leave(first)
        with pytest.raises(polite.PermitMisused, match=r"h1\.test.*leave that block first"):
            await entered(gate, 1)
        # One that another task leaves is free, too.
        await asyncio.create_task(leave(await entered(gate, 0)))
        await leave(await entered(gate, 0))
        await leave(second)
        await leave(await entered(gate, 1))

        assert len(gate.services.open_permits) == 0
        # A permit that is kept keeps no task.
        task = asyncio.create_task(entered(gate, 0))
        await leave(kept := await task)
        assert task not in gc.get_referents(kept)


@pytest.mark.parametrize("what", ["join", "drain"])
async def test_the_end_is_not_waited_for_inside_any_permit_of_the_frontier(what: str) -> None:
    async with scripted_gate() as gate, polite.open_frontier(gate) as frontier, asyncio.timeout(PATIENCE_S):
        await frontier.put(host(0))
        async with await anext(frontier), gate.permit(host(1)):
            with pytest.raises(polite.PermitMisused, match=rf"{what} inside the permit for https://h0\.test"):
                await getattr(frontier, what)()
        await frontier.join()


async def test_a_task_that_has_all_turns_of_an_origin_asks_for_no_further_one() -> None:
    async with scripted_gate(pacing=polite.PacingPolicy(concurrency=2)) as gate, asyncio.timeout(PATIENCE_S):
        first, second = await entered(gate, 0), await entered(gate, 0)
        third = gate.permit(host(0))
        with pytest.raises(polite.PermitMisused, match="leave that block first"):
            await third.__aenter__()
        await leave(first)
        await leave(await third.__aenter__())
        await leave(second)

        assert len(gate.services.open_permits) == 0


@pytest.mark.parametrize("known", [False, True])
async def test_a_scope_that_is_known_only_after_a_look_up_is_not_awaited_inside_either(known: bool) -> None:
    pacing = polite.PacingPolicy(scopes=polite.Scopes(address=polite.ScopeLimit(1.0)))
    async with scripted_gate(addresses=Names(), pacing=pacing) as gate, asyncio.timeout(PATIENCE_S):
        if known:
            await gate.check(host(1))
        first, second = await entered(gate, 0), gate.permit(host(1))
        with pytest.raises(polite.PermitMisused, match=r"h1\.test.*inside the permit for https://h0\.test"):
            await second.__aenter__()
        await leave(first)
        await leave(await second.__aenter__())

        assert len(gate.services.open_permits) == 0


async def test_rules_that_expire_inside_a_block_answer_there_and_are_fetched_again_after_it() -> None:
    transport = ScriptedTransport({"https://h0.test/robots.txt": EXPIRING})
    async with scripted_gate(transport) as gate:
        async with asyncio.timeout(PATIENCE_S), gate.permit(host(0)):
            await asyncio.sleep(400)
            for path, allowed in (("other", True), ("private/1", False)):
                url = f"https://h0.test/{path}"
                assert (await gate.check(url)).allowed is allowed
                assert (await gate.explain(url)).decision.allowed is allowed
            assert len(transport.asked) == 1
            transport.answer("https://h0.test/robots.txt", Reply(200, b"User-agent: *\nDisallow: /\n"))

        assert not (await gate.check("https://h0.test/other")).allowed


@pytest.mark.parametrize("question", ["check", "explain", "permit"])
@pytest.mark.parametrize(
    ("asked", "script", "pacing"),
    [
        ("https://h1.test/page", {}, WHOLE_CRAWL),
        ("http://h0.test/link", {"http://h0.test/robots.txt": TO_HTTPS}, None),
    ],
    ids=["of a shared scope", "redirected to the origin held"],
)
async def test_a_robots_txt_that_needs_the_turn_held_is_not_waited_for(question, asked, script, pacing):
    async with scripted_gate(script, pacing=pacing) as gate, asyncio.timeout(PATIENCE_S):
        async with gate.permit("https://h0.test/page"):
            with pytest.raises(
                polite.PermitMisused, match=rf"{asked}.*inside the permit for https://h0\.test/page"
            ):
                answer = getattr(gate, question)(asked)
                await (answer.__aenter__() if question == "permit" else answer)
        assert (await gate.check(asked)).allowed


async def test_other_tasks_go_on_waiting_for_the_same_robots_txt() -> None:
    async with scripted_gate({}, pacing=WHOLE_CRAWL) as gate, asyncio.timeout(PATIENCE_S):
        async with gate.permit(host(0)):
            other = asyncio.ensure_future(gate.check(host(1)))
            await asyncio.sleep(10)
            with pytest.raises(polite.PermitMisused):
                await gate.check(host(1))
            assert not other.done()
        assert (await other).allowed
