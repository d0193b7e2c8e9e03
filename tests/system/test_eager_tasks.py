"""The gate and the frontier where `create_task` runs a task's first steps at once (Python 3.12 and later)."""

import asyncio
import random
import sys

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.support import scripted_gate

pytestmark = [
    pytest.mark.skipif(sys.version_info < (3, 12), reason="no eager tasks"),
    pytest.mark.virtual_time,
]
RULES = Reply(200, b"User-agent: *\nDisallow: /no\n")


@pytest.fixture(autouse=True)
async def complaints() -> list[dict]:
    """Every task is eager; `complaints` has what callbacks raised."""
    complaints: list[dict] = []
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    return complaints


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("seed", range(6))
async def test_a_listener_may_start_tasks_that_use_gate_and_frontier_within_their_own_steps(
    seed, in_file, tmp_path, complaints
):
    rng, reactions, got, listening = random.Random(seed), [], [], False
    site = ScriptedTransport({f"http://h{number}.test/robots.txt": RULES for number in range(5)})

    async def react(event: object) -> None:
        url = f"http://h{rng.randrange(7)}.test/{rng.choice(['no', 'a'])}{rng.randrange(1_000)}"
        match rng.randrange(4):
            case 0:
                await gate.check(url)
            case 1:
                await frontier.put(url)
            case 2:
                await frontier.put_many([url, f"{url}x"])
            case _:
                async with gate.permit(url) as permit:
                    permit.report(status=200)

    def listen(event: object) -> None:
        if listening and len(reactions) < 100 and rng.random() < 0.7:
            reactions.append(asyncio.create_task(react(event)))

    async def work() -> None:
        async for permit in frontier:
            async with permit:
                got.append(permit.url)
                permit.report(status=200)
                if rng.random() < 0.2 and permit.task.tries < 2:
                    permit.retry(**rng.choice([{}, {"after": 1.0}]))

    store = tmp_path / "queue.sqlite" if in_file else None
    async with (
        asyncio.timeout(1e6),
        scripted_gate(site, listener=listen) as gate,
        polite.open_frontier(gate, store=store) as frontier,
    ):
        workers = [asyncio.create_task(work()) for _ in range(rng.randrange(1, 5))]
        listening = True
        await frontier.put_many(f"http://h{number % 7}.test/p{number}" for number in range(60))
        await frontier.join()
        while not all(each.done() for each in reactions):
            await asyncio.wait(list(reactions))
            await frontier.join()
        frontier.close()
        await asyncio.gather(*workers)

        assert (frontier.waiting, frontier.in_flight) == (0, 0)
    assert {f"http://h{number % 7}.test/p{number}" for number in range(60)} <= set(got)
    assert len(reactions) > 20
    assert [
        each for each in reactions if not isinstance(each.exception(), (polite.PoliteError, type(None)))
    ] == []
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert not complaints
