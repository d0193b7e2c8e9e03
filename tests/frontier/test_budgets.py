"""An origin whose budget is spent, or whose Crawl-delay is refused: its tasks are dropped, and no request is sent for them."""

import asyncio
import contextlib
import random

import pytest

import polite
from polite.errors import OriginDeclined, TurnLost
from polite.events import BudgetSpent, Dropped, Event
from polite.frontier.in_flight import TaskPermit
from polite.pacing.scopes import ScopeName
from polite.robots.exchange import Failed, Reply
from tests.frontier.support import Opened, one_process, turns_of
from tests.support import RULES, A, B, TimedTransport, scripted_gate


def budget(**options):
    return {"pacing": polite.PacingPolicy(**options)}


async def fetch(frontier, *, workers=1, failing=False, octets=0):
    sent: list[str] = []

    async def work() -> None:
        async for permit in frontier:
            with contextlib.suppress(OSError):
                async with permit:
                    sent.append(permit.url)
                    await asyncio.sleep(0.1)
                    if failing:
                        raise OSError("no response")
                    permit.report(status=200)
                    permit.received(octets)

    await asyncio.gather(*(work() for _ in range(workers)))
    return sent


def dropped(events: list[Event]) -> dict[str, str]:
    return {event.url: event.because for event in events if isinstance(event, Dropped)}


@pytest.mark.parametrize(("workers", "concurrency"), [(1, 1), (5, 1), (5, 5)])
async def test_no_more_pages_are_requested_than_the_budget_has(opened, workers, concurrency):
    events: list[Event] = []
    ended = []
    options = {"on_end": lambda task, outcome: ended.append((task.url, outcome.end))}

    opening = opened(listener=events.append, **options, **budget(max_pages=3, concurrency=concurrency))
    async with opening as (frontier, _):
        await frontier.put_many([*(f"{A}/{n}" for n in range(10)), f"{B}/1"])
        frontier.close()
        sent = await fetch(frontier, workers=workers)

    assert sorted(sent) == sorted([f"{A}/{n}" for n in range(3)] + [f"{B}/1"])
    because = "PacingPolicy.max_pages=3: so many pages were requested"
    assert dropped(events) == dict.fromkeys((f"{A}/{n}" for n in range(3, 10)), because)
    assert [e for e in events if isinstance(e, BudgetSpent)] == [BudgetSpent(A, "max_pages", 3, because)]
    assert (frontier.done, frontier.dropped) == (4, 7)
    assert len(ended) == 11


async def test_tasks_put_after_the_budget_is_spent_are_dropped_without_a_request(opened: Opened) -> None:
    transport = TimedTransport({f"{A}/robots.txt": RULES})
    async with opened(transport, **budget(max_pages=1)) as (frontier, _):
        await frontier.put(f"{A}/1")
        async with await anext(frontier) as permit:
            permit.report(status=200)
        for number in range(5):
            await frontier.put(f"{A}/later{number}")
            await asyncio.sleep(500)
        frontier.close()

        assert await fetch(frontier) == []
        assert (frontier.done, frontier.dropped) == (1, 5)
        assert len(transport.asked) == 1


async def test_octets_count_as_the_crawler_says(opened: Opened) -> None:
    events: list[Event] = []
    async with opened(listener=events.append, **budget(max_bytes=1_000)) as (frontier, _):
        await frontier.put_many(f"{A}/{n}" for n in range(10))
        frontier.close()
        assert len(await fetch(frontier, octets=400)) == 3
        assert set(dropped(events).values()) == {"PacingPolicy.max_bytes=1000: 1200 octets came"}


@pytest.mark.slow("many tasks", rows=["on a shared server"])
@pytest.mark.parametrize("store", ["in memory", "in a file", "on a shared server"], indirect=True)
@pytest.mark.parametrize("alive", [False, True])
async def test_many_urls_of_a_dead_host_cost_few_requests(opened: Opened, alive: bool) -> None:
    """`alive`: its robots.txt was there, and then nothing."""
    events: list[Event] = []
    transport = TimedTransport({f"{A}/robots.txt": RULES if alive else Failed(polite.Reason.TIMEOUT)})

    async with opened(transport, listener=events.append, **budget(max_failures=8)) as (frontier, _):
        await frontier.put_many(f"{A}/{n}" for n in range(3_000))
        frontier.close()
        sent = await fetch(frontier, workers=4, failing=True)

    assert len(sent) + len(transport.asked) <= 8 + alive
    assert frontier.dropped == 3_000
    assert (frontier.done, frontier.waiting, frontier.in_flight) == (0, 0, 0)
    assert dropped(events)[f"{A}/2999"] == "PacingPolicy.max_failures=8: so many requests failed in a row"


async def test_a_response_ends_a_row_of_failures(opened: Opened) -> None:
    async with opened(**budget(max_failures=3, circuit_failures=0)) as (frontier, _):
        await frontier.put_many(f"{A}/{n}" for n in range(10))
        frontier.close()
        statuses = iter([500, 500, 200, 429, 500, 503, 404, 500, 500, 200])
        async for permit in frontier:
            async with permit:
                permit.report(status=next(statuses))

        assert (frontier.done, frontier.dropped) == (10, 0)


async def test_a_budget_may_be_set_while_tasks_wait(opened: Opened) -> None:
    async with opened() as (frontier, gate):
        await frontier.put_many(f"{A}/{n}" for n in range(5))
        frontier.close()
        async with await anext(frontier) as permit:
            permit.report(status=200)
            gate.pacing = polite.PacingPolicy(max_pages=2)
        assert len(await fetch(frontier)) == 2


@pytest.mark.parametrize("rule", ["Crawl-delay: 4000", "Request-rate: 1/4000"])
async def test_a_delay_that_is_refused_drops_the_tasks(opened: Opened, rule: str) -> None:
    events: list[Event] = []
    script = {f"{A}/robots.txt": Reply(200, f"User-agent: *\n{rule}\n".encode())}
    async with opened(script, listener=events.append, **budget(on_long_delay="refuse")) as (frontier, gate):
        await frontier.put_many([f"{A}/1", f"{A}/2", f"{B}/1"])
        await asyncio.sleep(10)
        await frontier.put(f"{A}/3")
        frontier.close()

        assert await fetch(frontier) == [f"{B}/1"]
        because = "PacingPolicy.max_crawl_delay=300: robots.txt requests 4000 s between requests, and on_long_delay is 'refuse'"
        assert dropped(events) == dict.fromkeys([f"{A}/1", f"{A}/2", f"{A}/3"], because)
        assert f"turn: never. {because}" in str(await gate.explain(A))


async def test_failures_in_a_row_outlive_a_run(tmp_path):
    path, sent = str(tmp_path / "queue.sqlite"), 0
    for _ in range(4):
        async with (
            scripted_gate(**budget(max_failures=3)) as gate,
            polite.open_frontier(gate, store=path, max_tries=100) as frontier,
        ):
            await frontier.put(f"{A}/1")
            permit = await frontier.next()
            if permit is not None:
                async with permit:
                    sent += 1
                    permit.report(status=500)
                    permit.retry()

    assert sent == 3


@pytest.mark.parametrize("name", ["acme", "https://acme.test", "\udce9"])
async def test_what_a_scope_has_spent_outlives_a_run(tmp_path, name):
    both = polite.CustomScope("customer", lambda _: name, polite.ScopeLimit(delay=0.0, max_pages=3))
    sent: list[list[str]] = []
    for origin in (A, B):
        async with (
            scripted_gate(**budget(scopes=polite.Scopes(custom=[both]))) as gate,
            polite.open_frontier(gate, store=str(tmp_path / "queue.sqlite")) as frontier,
        ):
            await frontier.put_many(f"{origin}/{n}" for n in range(2))
            frontier.close()
            sent.append(await fetch(frontier))

    assert sent == [[f"{A}/0", f"{A}/1"], [f"{B}/0"]]


@pytest.mark.parametrize("first", ["a page", "a failure", "a budget that is set later"])
async def test_what_an_earlier_run_has_spent_counts_whatever_comes_before_its_tasks(tmp_path, first):
    path = str(tmp_path / "queue.sqlite")
    limits = budget(max_pages=5, max_failures=8)
    async with scripted_gate(**limits) as gate, polite.open_frontier(gate, store=path) as frontier:
        await frontier.put_many(f"{A}/{n}" for n in range(20))
        for _ in range(4):
            async with await anext(frontier) as permit:
                permit.report(status=200)

    later = first == "a budget that is set later"
    async with scripted_gate(**({} if later else limits)) as gate:
        if not later:
            async with gate.permit(f"{A}/own") as permit:
                if first == "a page":
                    permit.report(status=200)
                else:
                    permit.report(status=500)
        async with polite.open_frontier(gate, store=path) as frontier:
            frontier.close()
            await asyncio.sleep(60)
            gate.pacing = limits["pacing"]

            assert await fetch(frontier) == [f"{A}/4"]


PAGES = 12
HOLD_S = 30.0
WAYS = ("sent", "sent", "sent", "retried", "failed", "cancelled", "unsent", "dropped", "late", "lost")
ORIGINS = [f"https://{name}.test" for name in "abc"]


class Workers:
    """Workers that use their permits in ways drawn at random, and count each page that was perhaps requested."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.pages = draw, dict.fromkeys(ORIGINS, 0)
        self.octets = dict.fromkeys(ORIGINS, 0)

    async def work(self, frontier: polite.Frontier) -> None:
        async for permit in frontier:
            way = self.draw.choice(WAYS)
            with contextlib.suppress(OSError, OriginDeclined, TurnLost, asyncio.CancelledError):
                if way == "unsent" and self.draw.random() < 0.5:
                    permit.unsent(requeue=self.draw.random() < 0.5)
                elif way == "late":
                    # Its turn is taken back before it is entered.
                    await asyncio.sleep(HOLD_S * 2)
                    await self.use(permit, "sent")
                elif way == "dropped":
                    self.pages[permit.target.origin.text] += 1
                else:
                    await self.use(permit, way)
            del permit

    async def visit(self, gate: polite.Gate) -> None:
        await asyncio.sleep(self.draw.random() * 20)
        permit = gate.permit(f"{self.draw.choice(ORIGINS)}/own")
        with contextlib.suppress(
            OriginDeclined, polite.Disallowed, TimeoutError, OSError, asyncio.CancelledError
        ):
            async with asyncio.timeout(self.draw.choice((0.0, 2.0, 1e6))):
                await self.use(permit, self.draw.choice(("sent", "unsent", "failed", "cancelled")))

    async def use(self, permit: polite.Permit, way: str) -> None:
        origin = permit.target.origin.text
        async with permit:
            if way == "unsent":
                permit.unsent()
                return
            self.pages[origin] += 1
            await asyncio.sleep(self.draw.random())
            if way == "failed":
                raise OSError("no response")
            if way == "cancelled":
                raise asyncio.CancelledError
            permit.report(status=self.draw.choice((200, 200, 404, 429, 500)))
            octets = self.draw.randrange(10)
            permit.received(octets)
            self.octets[origin] += octets
            if way == "lost":
                await asyncio.sleep(HOLD_S * 2)
            if way == "retried" and isinstance(permit, TaskPermit):
                permit.retry(after=self.draw.random())


@one_process
@pytest.mark.parametrize("seed", range(25))
async def test_no_budget_is_exceeded_and_what_was_not_sent_is_given_back(opened: Opened, seed: int) -> None:
    draw, events = random.Random(seed), list[Event]()
    robots = {
        f"{origin}/robots.txt": Failed(polite.Reason.TIMEOUT) if draw.random() < 0.1 else RULES
        for origin in ORIGINS
    }
    robots[f"{ORIGINS[2]}/robots.txt"] = Reply(200, b"User-agent: *\nCrawl-delay: 4000")
    limits = {
        "max_pages": draw.choice((1, 5, PAGES)),
        "max_bytes": draw.choice((None, 20)),
        "max_failures": draw.choice((None, 2)),
    }
    limit = polite.ScopeLimit(delay=0.0, concurrency=99, max_pages=draw.choice((7, 1_000)))
    scopes = polite.Scopes(custom=[polite.CustomScope("customer", lambda _: "acme", limit)])
    pacing = polite.PacingPolicy(
        **limits, concurrency=draw.choice((1, 3)), on_long_delay="refuse", max_hold=HOLD_S, scopes=scopes
    )
    workers = Workers(draw)

    opening = opened(TimedTransport(robots), pacing=pacing, listener=events.append, max_tries=50)
    async with opening as (frontier, gate):
        await frontier.put_many(f"{origin}/{n}" for n in range(3 * PAGES) for origin in ORIGINS)
        frontier.close()
        await asyncio.gather(
            *(workers.work(frontier) for _ in range(draw.choice((1, 4)))),
            *(workers.visit(gate) for _ in range(30)),
        )
        turns = turns_of(gate)
        spent = {origin: turns.budgets.of(polite.Origin.of(origin)) for origin in ORIGINS}

        assert {origin: each.pages for origin, each in spent.items()} == workers.pages
        assert {origin: each.octets for origin, each in spent.items()} == workers.octets
        assert (
            turns.budgets.of(ScopeName("customer", "acme")).pages
            == sum(workers.pages.values())
            <= (limit.max_pages or 0)
        )
        assert not turns.budgets._open
        assert gate.inside == 0

    assert all(count <= limits["max_pages"] for count in workers.pages.values())
    assert workers.pages[ORIGINS[2]] == 0
    assert (frontier.waiting, frontier.in_flight) == (0, 0)
    assert frontier.done + frontier.dropped == 3 * PAGES * len(ORIGINS)
    told = {event.origin for event in events if isinstance(event, BudgetSpent)}
    assert told >= {origin for origin, count in workers.pages.items() if count == limits["max_pages"]}
