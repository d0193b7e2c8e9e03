"""A permit of a frontier in a file that is entered late and refused: its task ends, there too."""

import asyncio
from pathlib import Path

import pytest

import polite
from polite.robots.exchange import Ask, Failed, Reply
from polite.testing import ScriptedTransport
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

PAGES = [f"https://site.test/{number}" for number in range(2)]


class Changing(ScriptedTransport):
    """Allows all in its first robots.txt, and nothing in the next."""

    async def get(self, ask: Ask) -> Reply | Failed:
        self.asked.append(ask.target.url)
        rest = b"" if len(self.asked) == 1 else b"Disallow: /\n"
        return Reply(200, b"User-agent: *\n" + rest, cache_control="no-cache")


async def test_a_late_permit_that_is_refused_ends_its_task_in_the_file(tmp_path: Path) -> None:
    queue = tmp_path / "queue.sqlite"
    async with scripted_gate(Changing({})) as gate:
        async with polite.open_frontier(gate, store=queue) as frontier:
            await frontier.put_many(PAGES)
            permit = await anext(frontier)
            await asyncio.sleep(7_200)
            with pytest.raises(polite.Disallowed):
                await permit.__aenter__()
            frontier.close()
            async with asyncio.timeout(7_200):
                # Nothing is given out: the other task is refused when a worker comes for it.
                assert [permit async for permit in frontier] == []
                await frontier.join()
            counts = (frontier.refused, frontier.done, frontier.in_flight)
        async with polite.open_frontier(gate, store=queue) as again:
            left = again.waiting

    assert (counts, left) == ((2, 0, 0), 0)
