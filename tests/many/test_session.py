"""Sessions on a real server, in real time: the lease is short. Virtual time has the rest (tests/stores/redis)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from polite.clock import SystemClock
from polite.errors import StoreEmptied
from polite.pacing.homes import TakenHome
from polite.stores.redis.address import Address
from polite.stores.redis.changes import Changes, Ended, PutEntry
from polite.stores.redis.home import Home
from polite.stores.redis.link import RedisLink
from polite.stores.redis.session import Remaining, Session
from polite.stores.redis.step_reply import StepReply, TaskRow
from tests.many.servers import ValkeyServer

# The shortest lease: a beat is 167 ms.
LEASE_S = 1.0


class Machine:
    """A process: its pacer, its frontier, and its session."""

    def __init__(self, link: RedisLink, lease_s: float) -> None:
        self.taken: list[TakenHome] = []
        self.homes: dict[str, Home] = {}
        self.rows: dict[str, list[TaskRow]] = {}
        self.withdrawn_homes: list[str] = []
        self.failures: list[Exception] = []
        self.room = 10
        self.rest_s = 0.0
        self.session = Session(
            link,
            SystemClock(),
            "news",
            partitions=1,
            lease_s=lease_s,
            keyed=False,
            max_tries=3,
            max_done=1_000,
            tell=lambda event: None,
        )
        self.session.tenant = self

    def crawl(self) -> None:
        self.session.user = self
        self.session.begin()

    def take_over(self, taken: TakenHome) -> None:
        self.taken.append(taken)

    def hand_over(self, home: str) -> tuple[float, str | None]:
        return self.rest_s, '{"strikes":2}'

    def waits(self, home: str) -> bool:
        return False

    def picked(self, home: Home, origins: list[tuple[str, list[TaskRow]]], crawl_state: str | None) -> None:
        self.homes[home.name] = home
        for origin, rows in origins:
            self.rows.setdefault(origin, []).extend(rows)

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        self.homes[home.name] = home
        self.rows.setdefault(origin, []).extend(rows)

    def withdrawn(self, home: Home) -> None:
        self.withdrawn_homes.append(home.name)
        self.homes.pop(home.name, None)
        self.session.release(home)

    def keeps(self, home: Home) -> bool:
        return False

    def stepped(self, partition: int, reply: StepReply) -> None: ...

    def failed(self, error: Exception) -> None:
        self.failures.append(error)

    async def end_all(self) -> None:
        """End the task of each home, and release the home."""
        for name, home in list(self.homes.items()):
            await self.send(ended=[Ended(name, f"https://{name}", f"{name}-{1:08}", "done")])
            if self.homes.get(name) is home:
                del self.homes[name]
                self.session.release(home)

    async def send(self, **lists: object) -> StepReply:
        return await self.session.partition("a.com").submit(Changes(**lists))  # type: ignore[arg-type]


@asynccontextmanager
async def machine(
    server: ValkeyServer, *, lease_s: float = LEASE_S, crawls: bool = False
) -> AsyncIterator[Machine]:
    link = RedisLink.to(Address.of(server.url))
    made = Machine(link, lease_s)
    if crawls:
        made.crawl()
    try:
        yield made
    finally:
        await made.session.close()
        await link.close()


async def eventually(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(5.0):
        while not what():
            await asyncio.sleep(0.01)


def put(home: str, number: int) -> PutEntry:
    return PutEntry(
        home, f"https://{home}", f"{home}-{number:08}", f'["/{number}"]', None, again=False, ready_in=None
    )


async def test_a_home_goes_from_gate_to_gate_with_its_rest_and_state(valkey: ValkeyServer) -> None:
    async with machine(valkey) as one, machine(valkey) as other:
        one.rest_s = 30.0
        held = await one.session.take("a.com")

        taken = await other.session.take("a.com")

        assert not held.good
        assert taken.good
        assert taken.fence > held.fence
        [known] = other.taken
        assert known.clean
        assert known.free_s == pytest.approx(30.0, abs=1.0)
        assert known.state == '{"strikes":2}'


async def test_a_task_is_put_picked_ended_and_then_the_crawl_is_over(valkey: ValkeyServer) -> None:
    async with machine(valkey, crawls=True) as one, machine(valkey, crawls=True) as other:
        reply = await one.send(puts=[put("a.com", 1), put("a.com", 1), put("b.com", 1)])
        assert [number is None for number in reply.puts] == [False, True, False]
        await eventually(lambda: {*one.homes, *other.homes} == {"a.com", "b.com"})
        assert not one.homes.keys() & other.homes.keys()
        assert not (await one.session.over()).empty

        one.session.close_puts()
        other.session.close_puts()
        async with asyncio.timeout(5.0):
            while await one.session.over() != Remaining(empty=True, all_closed=True):
                # A home may go from one to the other at any time: the other has too few.
                await one.end_all()
                await other.end_all()


async def test_a_new_task_of_a_held_home_is_news_for_its_owner(valkey: ValkeyServer) -> None:
    async with machine(valkey, crawls=True) as owner, machine(valkey, crawls=True) as other:
        await owner.send(puts=[put("a.com", 1)])
        other.room = 0
        await eventually(lambda: "a.com" in owner.homes)

        await other.send(puts=[put("a.com", 2)])

        await eventually(lambda: len({row.digest for row in owner.rows["https://a.com"]}) == 2)


async def test_a_process_that_ends_without_a_word_loses_its_homes_after_its_lease(
    valkey: ValkeyServer,
) -> None:
    async with machine(valkey) as dying, machine(valkey) as heir:
        held = await dying.session.take("a.com")
        dying.session.entered(held)
        # As SIGSTOP does: no batch goes any more.
        dying.session.partition("a.com").stop(ConnectionError("killed"))

        async with asyncio.timeout(5.0):
            taken = await heir.session.take("a.com")

        assert not held.good
        assert taken.fence > held.fence
        [known] = heir.taken
        assert not known.clean
        assert known.age_s is not None
        assert known.age_s < 0.5


async def test_owners_go_on_after_a_restart_that_keeps_everything(
    start_valkey: Callable[..., ValkeyServer],
) -> None:
    server = start_valkey("--appendfsync", "always", append_only=True)
    async with machine(server) as one:
        held = await one.session.take("a.com")

        await asyncio.to_thread(server.restart)
        await eventually(lambda: one.session.held("a.com") is held)
        await one.send()
        await one.send()

        assert server.client.hget("polite:{news:0}:h", "a.com").split(":")[1] == str(held.fence)
        assert one.session.held("a.com") is held


async def test_a_flushed_server_fails_a_frontier_and_a_gate_goes_on(valkey: ValkeyServer) -> None:
    async with machine(valkey, crawls=True) as frontier:
        await frontier.send(puts=[put("a.com", 1)])
        await eventually(lambda: "a.com" in frontier.homes)
        home = frontier.homes["a.com"]
        valkey.client.flushall()

        with pytest.raises(StoreEmptied, match="holds nothing of this crawl"):
            await frontier.send()
        assert not home.good
        assert [type(failure) for failure in frontier.failures] == [StoreEmptied]

    async with machine(valkey) as gate:
        held = await gate.session.take("b.com")
        valkey.client.flushall()
        await gate.send()
        await gate.send()

        assert gate.session.held("b.com") is held
        assert valkey.client.hget("polite:{news:0}:h", "b.com").split(":")[1] == str(held.fence)
