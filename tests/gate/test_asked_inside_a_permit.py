"""`check`, `explain` and `permit` inside a permit's block: a task never waits for a turn that it holds itself."""

import asyncio

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import LoopClock, ScriptedTransport
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

# Less than PacingPolicy.max_hold, after which a turn is taken back.
PATIENCE_S = 3_000.0
EXPIRING = Reply(200, b"User-agent: *\nDisallow: /private\n", cache_control="no-cache")
WHOLE_CRAWL = polite.PacingPolicy(scopes=polite.Scopes(crawl=polite.ScopeLimit(1.0)))


@pytest.mark.parametrize(("path", "allowed"), [("/other", True), ("/private/1", False)])
async def test_rules_that_expire_inside_a_block_still_answer_there(path: str, allowed: bool) -> None:
    async with scripted_gate({"https://h0.test/robots.txt": EXPIRING}) as gate:
        async with asyncio.timeout(PATIENCE_S), gate.permit("https://h0.test/page"):
            await asyncio.sleep(400)
            decision = await gate.check(f"https://h0.test{path}")
            explained = await gate.explain(f"https://h0.test{path}")

        assert (decision.allowed, explained.decision.allowed) == (allowed, allowed)


async def test_when_the_block_is_left_expired_rules_are_fetched_again() -> None:
    transport = ScriptedTransport({"https://h0.test/robots.txt": EXPIRING})
    clock = LoopClock()
    async with scripted_gate(transport, clock=clock) as gate:
        async with asyncio.timeout(PATIENCE_S), gate.permit("https://h0.test/page"):
            await asyncio.sleep(400)
            await gate.check("https://h0.test/other")
            fetched_inside = len(transport.asked)
            transport.answer("https://h0.test/robots.txt", Reply(200, b"User-agent: *\nDisallow: /\n"))
        decision = await gate.check("https://h0.test/other")

    assert fetched_inside == 1
    assert not decision.allowed


@pytest.mark.parametrize("question", ["check", "explain"])
async def test_an_unknown_origin_whose_robots_txt_needs_the_turn_held_is_misuse(question: str) -> None:
    async with scripted_gate({}, pacing=WHOLE_CRAWL) as gate, asyncio.timeout(PATIENCE_S):
        async with gate.permit("https://h0.test/page"):
            with pytest.raises(
                polite.PermitMisused, match=r"h1\.test.*inside the permit for https://h0\.test/page"
            ):
                await getattr(gate, question)("https://h1.test/page")
        assert (await gate.check("https://h1.test/page")).allowed


@pytest.mark.parametrize("question", ["check", "explain", "permit"])
async def test_a_robots_txt_that_redirects_to_the_origin_held_is_not_waited_for(question: str) -> None:
    redirect = Reply(301, location="https://h0.test/robots.txt")
    async with scripted_gate({"http://h0.test/robots.txt": redirect}) as gate, asyncio.timeout(PATIENCE_S):
        async with gate.permit("https://h0.test/page"):
            with pytest.raises(polite.PermitMisused, match=r"http://h0\.test/link.*https://h0\.test/page"):
                if question == "permit":
                    await gate.permit("http://h0.test/link").__aenter__()
                else:
                    await getattr(gate, question)("http://h0.test/link")
        assert (await gate.check("http://h0.test/link")).allowed


async def test_other_tasks_go_on_waiting_for_the_same_robots_txt() -> None:
    async with scripted_gate({}, pacing=WHOLE_CRAWL) as gate, asyncio.timeout(PATIENCE_S):
        async with gate.permit("https://h0.test/page"):
            other = asyncio.ensure_future(gate.check("https://h1.test/page"))
            await asyncio.sleep(10)
            with pytest.raises(polite.PermitMisused):
                await gate.check("https://h1.test/page")
            assert not other.done()
        assert (await other).allowed
