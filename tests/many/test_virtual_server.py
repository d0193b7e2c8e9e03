"""The simulated server: polite's own scripts on a real server, whose clock and run id are virtual."""

import asyncio

import pytest

from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.stores.redis.changes import Changes
from polite.stores.redis.crawl import partition_prefix
from polite.stores.redis.opening import open_shared
from polite.stores.redis.step import StepRequest, Unreached
from polite.stores.redis.step_reply import StepReply
from polite.testing.loop import VirtualTimeLoop
from tests.many.stepping import put
from tests.simulation.loop import SimulatedClock
from tests.simulation.machines.own_server import own_server
from tests.simulation.machines.virtual_client import VirtualClient
from tests.simulation.machines.virtual_server import VirtualServer

PREFIX = partition_prefix("test", 0)
SITE = Origin.of("https://h.example")
SECOND = 1_000_000


class World:
    """A server whose clock the test sets, and which processes step on."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0
        self.server = VirtualServer(own_server(), lambda: self.time)
        self._seqs: dict[str, int] = {}
        self._born: str | None = None
        self.client = VirtualClient(self.server)

    def step(self, session: str, *, room: int = 0, **changes: list[object]) -> StepReply:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            return runner.run(self._step(session, room, changes))

    async def _step(self, session: str, room: int, changes: dict[str, list[object]]) -> StepReply:
        seq = self._seqs[session] = self._seqs.get(session, 0) + 1
        request = StepRequest(
            session, seq == 1, seq, 6 * SECOND, SECOND, self._born, "born", False, False, 3, 100, False, False, room, None,
            Changes(**changes),  # type: ignore[arg-type]
        )  # fmt: skip
        shared = await open_shared(
            self.client, SimulatedClock(asyncio.get_running_loop(), zero=0.0, wall=0.0)
        )
        reply = StepReply.decode(await shared.link.step(PREFIX, request.encode()))
        self._born = reply.born or self._born
        return reply


@pytest.fixture
def world() -> World:
    return World()


def test_a_lease_ends_by_virtual_time(world: World) -> None:
    world.step("a", room=1, puts=[put("https://h.example/1")])
    world.step("a", room=1)

    # The store counts as away if nothing came for so long, and gives everyone another lease.
    world.time += 7
    before = world.step("b", room=1)
    for _ in range(3):
        world.time += 2
        world.step("b")
    world.time += 2
    after = world.step("b", room=1)

    assert not before.picked
    assert [taken.home for taken, _ in after.picked] == ["h.example"]
    assert after.picked[0][0].age == 9 * SECOND


def test_another_run_is_noticed_and_loses_nothing(world: World) -> None:
    world.step("a", puts=[put("https://h.example/1")])

    world.server.restart()
    reply = world.step("a", puts=[put("https://h.example/1")])

    assert (reply.epoch, reply.quiet, reply.puts) == (1, 6 * SECOND, [None])


def test_a_failover_loses_what_was_written_last(world: World) -> None:
    world.step("a", puts=[put("https://h.example/1")])
    world.server.keep()
    world.step("a", puts=[put("https://h.example/2")])

    world.server.fail_over()
    reply = world.step("a", puts=[put("https://h.example/1"), put("https://h.example/2")])

    assert reply.puts[0] is None
    assert reply.puts[1] is not None
    assert (reply.epoch, reply.waiting) == (1, 2)


def test_a_second_failover_that_forgets_the_first_is_another_server(world: World) -> None:
    world.step("a")
    world.server.keep()
    world.server.fail_over()
    first = world.step("a")

    # Back to the data of the one before: it knows nothing of the first failover.
    world.server.fail_over()
    second = world.step("a")

    assert second.epoch == first.epoch
    assert second.server != first.server


def test_an_emptied_server_is_noticed(world: World) -> None:
    world.step("a", puts=[put("https://h.example/1")])

    world.server.empty()

    assert world.step("a").err == "emptied"


def test_robots_txt_results_expire_by_virtual_time() -> None:
    loop = VirtualTimeLoop()
    server = VirtualServer(own_server(), lambda: 1_700_000_000.0 + loop.time())
    clock = SimulatedClock(loop, zero=0.0, wall=1_600_000_000.0)

    async def crawl() -> tuple[SavedBackOff | None, SavedBackOff | None]:
        robots = (await open_shared(VirtualClient(server), clock)).robots
        robots.hold(SITE, SavedBackOff(clock.wall(), clock.wall() + 60, "busy"))
        await asyncio.sleep(30)
        held = await robots.held(SITE)
        await asyncio.sleep(100)
        return held, await robots.held(SITE)

    held, later = loop.run_until_complete(crawl())
    loop.close()

    assert held is not None
    assert held.until == pytest.approx(1_600_000_060.0, abs=0.1)
    assert later is None


def test_a_call_that_never_comes_back_ends_in_virtual_time() -> None:
    loop = VirtualTimeLoop()
    server = VirtualServer(own_server(), loop.time)

    async def lost(execute: object, key: str) -> object:
        return await asyncio.Event().wait()

    async def crawl() -> float:
        shared = await open_shared(VirtualClient(server), SimulatedClock(loop, zero=0, wall=0))
        shared.link._client._wire = lost  # type: ignore[union-attr]
        with pytest.raises(Unreached):
            await shared.link.step(PREFIX, "{}")
        return loop.time()

    assert loop.run_until_complete(crawl()) == pytest.approx(2.5, abs=0.1)
    loop.close()
