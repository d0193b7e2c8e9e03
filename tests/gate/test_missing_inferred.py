"""`RobotsPolicy.infer_missing`: a site that answers 5xx for every missing page has no robots.txt."""

import asyncio

import pytest

import polite
from polite.events import Event, RobotsFetched
from polite.robots.exchange import Ask, Failed, Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, RULES, opened

pytestmark = pytest.mark.virtual_time

INFERRING = polite.RobotsPolicy(infer_missing=True)


async def test_h7_a_site_that_answers_5xx_for_missing_pages_has_no_robots_txt() -> None:
    class OnlyTheFrontPage(ScriptedTransport):
        async def get(self, ask: Ask) -> Reply | Failed:
            self.asked.append(ask.target.url)
            return Reply(200 if ask.target.path == "/" else 500)

    events: list[Event] = []
    transport = OnlyTheFrontPage()

    async with opened(transport, robots=INFERRING, listener=events.append) as (gate, _):
        decision = await gate.check(PAGE)
        explained = str(await gate.explain(PAGE))
        await asyncio.sleep(0.8 * 86_400)
        await gate.check(PAGE)
        asked_in_a_day = len(transport.asked)
        await asyncio.sleep(0.3 * 86_400)
        await gate.check(PAGE)

    assert decision.allowed
    assert (decision.reason, decision.cause) == (polite.Reason.UNAVAILABLE, polite.Reason.INFERRED_MISSING)
    assert "5xx, as it does for any page that does not exist, status 500, and 2 other pages" in explained
    assert "RobotsPolicy.infer_missing" in explained
    assert events[0] == RobotsFetched(
        "https://site.test", "unavailable", "INFERRED_MISSING", 500, 0, 0.0, 86_400.0, 2
    )
    assert (asked_in_a_day, len(transport.asked)) == (3, 6)


async def test_h7_explain_says_why_nothing_was_inferred() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(500)})

    async with opened(transport, robots=INFERRING) as (gate, _):
        explained = str(await gate.explain(PAGE))

    assert "disallowed" in explained
    assert "not inferred to be missing: the result of a page that cannot exist is: status 404" in explained
    assert len(transport.asked) == 2


async def test_h7_the_copy_of_a_file_that_was_there_goes_on_deciding() -> None:
    transport = ScriptedTransport({ROBOTS: [Reply(200, RULES), Reply(500)]})

    async with opened(transport, robots=INFERRING) as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(2 * 86_400)
        decision = await gate.check("https://site.test/private")

    assert not decision.allowed
    assert transport.asked == [ROBOTS, ROBOTS]
