"""Frontiers of several processes on one server, in one virtual time: a process is a gate and a frontier of its own."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

import polite
from polite.compose.shared import memberships
from polite.events import Dropped, Event
from polite.frontier.frontier import Frontier
from polite.robots.exchange import Ask, Failed, Reply
from tests.gate.support import Names
from tests.simulation.machines.virtual_server import VirtualClient, VirtualServer, own_server
from tests.support import fetch_rest, now, scripted_gate

pytestmark = pytest.mark.virtual_time

DELAY_S = 1.0
PACING = polite.PacingPolicy(min_delay=DELAY_S)


class Site:
    """All hosts, as they see requests from all processes."""

    def __init__(self) -> None:
        self.server = VirtualServer(own_server(), lambda: 1_700_000_000.0 + now())
        self.seen: list[tuple[float, str, str]] = []  # when, by which process, URL
        self.robots: Counter[str] = Counter()

    async def get(self, ask: Ask) -> Reply | Failed:
        self.robots[ask.target.origin.host] += 1
        self.seen.append((now(), "robots", ask.target.url))
        await asyncio.sleep(0.01)
        return Reply(200, b"User-agent: *\nDisallow: /private\n")

    async def close(self) -> None: ...

    @property
    def pages(self) -> list[str]:
        return [url for _, by, url in self.seen if by != "robots"]

    @property
    def gaps(self) -> list[float]:
        """The times between two requests of one host, whichever process sent them."""
        times: dict[str, list[float]] = {}
        for when, _, url in sorted(self.seen):
            times.setdefault(url.split("/")[2], []).append(when)
        return [later - earlier for each in times.values() for earlier, later in pairwise(each)]


class Process:
    """A gate and a frontier that share a crawl with others."""

    def __init__(self, site, name, **options):
        self.options, self.site, self.name = options, site, name
        self.events: list[Event] = []
        self.ends: list[tuple[str, object, str]] = []
        self.frontier: Frontier
        self.gate: polite.Gate

    async def __aenter__(self):
        self._stack = AsyncExitStack()
        transports = {"http": self.site, "https": self.site}
        self.gate = await self._stack.enter_async_context(
            scripted_gate(transports=transports, pacing=PACING, listener=self.events.append)
        )
        client = VirtualClient(self.site.server)
        self.frontier = await self._stack.enter_async_context(
            polite.open_frontier(self.gate, store=client, crawl="news", on_end=self._ended, **self.options)
        )
        return self

    def _ended(self, task: polite.Task, outcome: polite.TaskOutcome) -> None:
        self.ends.append((task.url, task.payload, outcome.end.value))

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def work(self, workers: int = 8, took_s: float = 0.05) -> None:
        async def worker() -> None:
            async for permit in self.frontier:
                async with permit:
                    permit.require()
                    self.site.seen.append((now(), self.name, permit.url))
                    await asyncio.sleep(took_s)
                    permit.report(status=200)

        await asyncio.gather(*(worker() for _ in range(workers)))


def urls(hosts: int, pages: int) -> list[str]:
    return [f"https://h{host}.test/{page}" for page in range(pages) for host in range(hosts)]


async def test_keys_are_the_crawls_and_each_task_ends_once_in_one_process() -> None:
    site = Site()
    async with AsyncExitStack() as stack:
        group = [await stack.enter_async_context(Process(site, str(n))) for n in range(3)]
        admissions = []
        for n, process in enumerate(group):
            for host in range(6):
                url = f"https://h{host}.test/form"
                admissions.append(await process.frontier.put(url, key="one", payload=f"{host} one"))
                await process.frontier.put(url, key=str(n), payload=f"{host} {n}")
                await process.frontier.put(url, unique=False, payload=f"{host} loose {n}")
            await process.frontier.put("https://h0.test/private", payload="refused")
            process.frontier.close()
        async with asyncio.timeout(100):
            await asyncio.gather(*(process.work() for process in group))

    assert [bool(admission) for admission in admissions] == [True] * 6 + [False] * 12
    assert len(site.pages) == 6 * (1 + 3 + 3)
    ends = [end for process in group for end in process.ends]
    payloads = {f"{host} {e}" for host in range(6) for e in ("one", 0, 1, 2, "loose 0", "loose 1", "loose 2")}
    assert {payload for _, payload, end in ends if end == "done"} == payloads
    assert len(ends) == len(payloads) + 1
    assert all(process.ends for process in group)
    assert min(site.gaps) >= DELAY_S


def killed_session(process):
    return process.frontier._dispatcher.store.backend._session  # type: ignore[attr-defined]


@pytest.mark.parametrize(("lived_s", "uncounted"), [(0.5, 0), (0.0, 1)])
async def test_a_page_that_ends_its_process_is_dropped_at_max_tries(lived_s: float, uncounted: int) -> None:
    """Of the first process that it ends the server need not know: who takes over such a home is more careful."""
    site = Site()
    dropped: list[Dropped] = []
    for number in range(3 + uncounted):
        process = Process(site, str(number))
        await process.__aenter__()
        if number == 0:
            await process.frontier.put("https://h0.test/poison")
        async with asyncio.timeout(60):
            permit = await anext(process.frontier)
        assert permit.task.tries == max(0, number - uncounted)
        await asyncio.sleep(lived_s)
        for partition in killed_session(process).homes.partitions:
            partition.stop(RuntimeError("killed"))
        permit.unsent()
    async with Process(site, "last") as last:
        last.frontier.close()
        async with asyncio.timeout(120):
            await last.work()
        dropped = [event for event in last.events if isinstance(event, Dropped)]
        assert last.ends == [("https://h0.test/poison", None, "dropped")]

    assert [(event.url, event.tries) for event in dropped] == [("https://h0.test/poison", 3)]
    assert site.pages == []


@pytest.mark.parametrize("waits", ["join", "next"])
async def test_what_another_process_has_put_a_moment_ago_is_waited_for(waits: str) -> None:
    site = Site()
    async with Process(site, "one") as one, Process(site, "two") as two:
        async with asyncio.timeout(10):
            await one.frontier.join()  # it knows that nothing is left
        await two.frontier.put("https://h0.test/0")
        if waits == "join":
            work = asyncio.create_task(two.work())
            await one.frontier.join()
            assert site.pages == ["https://h0.test/0"]
            for each in (one, two):
                each.frontier.close()
            await work
        else:
            assert await one.frontier.next() is not None


async def test_a_put_waits_for_capacity_that_another_process_frees() -> None:
    site = Site()
    async with Process(site, "one") as one, Process(site, "two", max_waiting=4) as two, asyncio.timeout(100):
        await two.frontier.put_many(urls(1, 4))
        await asyncio.sleep(5)
        putting = asyncio.create_task(two.frontier.put("https://h1.test/more"))
        await asyncio.sleep(1)
        assert not putting.done()
        two.frontier.pause()
        worker = asyncio.create_task(one.work())
        await putting
        two.frontier.resume()
        for each in (one, two):
            each.frontier.close()
        await asyncio.gather(worker, two.work())


async def test_a_url_that_this_process_put_before_needs_no_call() -> None:
    site = Site()
    async with Process(site, "one") as one:
        await one.frontier.put_many(urls(2, 3))
        calls = site.server.calls

        again = await one.frontier.put_many(urls(2, 3))
        assert site.server.calls - calls <= 1, "at most a beat"
        assert set(again) == {polite.Admission.DUPLICATE}

        site.server.restart()
        await asyncio.sleep(10)
        calls = site.server.calls
        assert set(await one.frontier.put_many(urls(2, 3))) == {polite.Admission.DUPLICATE}
        assert site.server.calls > calls
        assert (await one.frontier.put(urls(1, 1)[0], again=True)) is polite.Admission.DUPLICATE


@pytest.mark.parametrize("open_s", [6.0, 60.0], ids=["the frontier ended", "no worker comes"])
async def test_tasks_leave_a_gate_that_always_waits_at_their_home(open_s: float) -> None:
    site = Site()
    async with AsyncExitStack() as stack:
        client = VirtualClient(site.server)
        gate = await stack.enter_async_context(
            scripted_gate(store=client, crawl="news", transports={"https": site}, pacing=PACING)
        )

        async def visit(number: int) -> None:
            while True:
                async with gate.permit(f"https://h0.test/again{number}") as permit:
                    permit.require()
                    site.seen.append((now(), "gate", permit.url))
                    permit.report(status=200)

        async def own_frontier() -> None:
            async with polite.open_frontier(gate, crawl="news") as frontier:
                frontier.close()
                await asyncio.sleep(open_s)

        visiting = [asyncio.create_task(visit(number)) for number in range(2)]
        opened = asyncio.create_task(own_frontier())
        one = await stack.enter_async_context(Process(site, "one"))
        await asyncio.sleep(5)
        await one.frontier.put_many(urls(1, 3))
        one.frontier.close()
        async with asyncio.timeout(40):
            await one.work()
        for task in (*visiting, opened):
            task.cancel()

    assert min(site.gaps) >= DELAY_S


async def test_what_a_shared_frontier_cannot_keep_is_refused() -> None:
    site = Site()
    async with Process(site, "one") as one:
        with pytest.raises(polite.InvalidOption, match="262144 is the limit"):
            await one.frontier.put("https://h0.test/", payload="x" * 300_000)
    pacing = polite.PacingPolicy(home="address", scopes=polite.Scopes(address=polite.ScopeLimit()))
    async with scripted_gate(transports={"https": site}, pacing=pacing, addresses=Names({})) as gate:
        client = VirtualClient(site.server)
        with pytest.raises(polite.InvalidOption, match="is for gates"):
            async with polite.open_frontier(gate, store=client):
                pass


async def test_a_url_that_ended_is_fetched_when_it_is_put_again_and_not_after_a_restart() -> None:
    site = Site()
    async with Process(site, "one") as one, Process(site, "two") as two:
        await one.frontier.put_many(urls(2, 2))
        work = asyncio.create_task(one.work())
        await asyncio.sleep(8)
        assert len(site.pages) == 4
        assert (await one.frontier.put(urls(1, 1)[0])) is polite.Admission.DUPLICATE
        assert (await one.frontier.put(urls(1, 1)[0], again=True)) is polite.Admission.WAITING
        await two.frontier.put_many(urls(2, 2)[1:], again=True)
        one.frontier.close()
        await asyncio.sleep(8)
        assert len(site.pages) == 8
        site.server.restart()
        await asyncio.sleep(40)
        two.frontier.close()
        async with asyncio.timeout(60):
            await asyncio.gather(work, two.work())

    assert len(site.pages) == 8


async def test_a_frontier_of_its_own_on_a_shared_gate_warns(caplog: pytest.LogCaptureFixture) -> None:
    client = VirtualClient(Site().server)
    async with scripted_gate(store=client, crawl="news") as gate:
        async with polite.open_frontier(gate, crawl="news"):
            assert "to itself" not in caplog.text
        async with polite.open_frontier(gate):
            assert "crawl='news' shares them" in caplog.text
    assert gate not in memberships


async def test_a_host_whose_permit_outlives_its_frontier_is_crawled_by_the_next_one() -> None:
    async with asyncio.timeout(300), Process(Site(), "a") as process:
        client = VirtualClient(process.site.server)
        await process.frontier.put("https://a.test/1")
        old = await anext(process.frontier)
        await old.__aenter__()
        process.frontier.stop()
        await process.frontier._dispatcher.store.close()
        async with polite.open_frontier(process.gate, store=client, crawl="news") as second:
            await second.put("https://a.test/2")
            await asyncio.sleep(20)
            await old.__aexit__(None, None, None)
            await fetch_rest(second)

            assert second.done >= 1
