"""Why each URL waits, and which origins wait longest: scenes of a frontier in virtual time."""

import asyncio
import logging
from typing import Any

import pytest

import polite
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.origin_queues import OriginQueues
from polite.frontier.queue_states import QueueEvent
from polite.origin import Origin
from polite.robots.exchange import Failed, Reply
from polite.robots.reason import Reason
from polite.status.survey import Survey
from polite.testing import ScriptedTransport
from tests.status.support import Watched, watched
from tests.support import RULES, A, B, fetch_all

pytestmark = pytest.mark.virtual_time


def reasons(state: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    return {row["reason"]: (row["origins"], row["urls"], row["permits"]) for row in state["waiting"]}


def row_of(state: dict[str, Any], origin: str) -> dict[str, Any]:
    (row,) = [each for each in state["origins"] if each["origin"] == origin]
    return dict(row)


async def work(frontier: polite.Frontier, **report: Any) -> None:
    async for permit in frontier:
        async with permit:
            permit.report(**report)


async def visit_some(crawl: Watched, urls: list[str], **report: Any) -> "asyncio.Task[None]":
    await crawl.frontier.put_many(urls)
    return asyncio.create_task(work(crawl.frontier, **report))


async def test_nothing_is_looked_at_while_nobody_looks() -> None:
    async with watched() as crawl:
        await crawl.frontier.put(f"{A}/1")
        await asyncio.sleep(60)

        state = crawl.monitor.state()

    assert state["survey"]["age_s"] is None
    assert state["waiting"] == state["origins"] == []


async def test_urls_wait_for_the_delay_between_two_requests() -> None:
    script = {f"{A}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /no\nAllow: /\nCrawl-delay: 100\n")}
    async with watched(script) as crawl:
        working = await visit_some(crawl, [f"{A}/{n}" for n in range(5)], status=200)
        await asyncio.sleep(130)
        state = await crawl.look()
        working.cancel()

    row = row_of(state, A)
    assert reasons(state) == {"delay": (1, 4, 0)}
    assert (row["reason"], row["because"], row["scope"], row["urls"]) == ("delay", "Crawl-delay 100 s", A, 4)
    assert row["rule"] == {"allowed": True, "text": "allowed by Allow: / (line 3)", "line": 3}
    assert row["since_s"] == pytest.approx(33.5, abs=0.1)
    assert row["until_s"] == pytest.approx(66.5, abs=0.1)
    assert row["url"].startswith(f"{A}/")


async def test_urls_wait_for_a_back_off_after_429() -> None:
    async with watched() as crawl:
        working = await visit_some(crawl, [f"{A}/1", f"{A}/2"], status=429, headers={"Retry-After": "600"})
        await asyncio.sleep(20)
        state = await crawl.look()
        working.cancel()

    assert reasons(state) == {"back_off": (1, 1, 0)}
    assert row_of(state, A)["because"] == "status 429, Retry-After 600 s"


async def test_urls_wait_for_an_open_circuit() -> None:
    async with watched(pacing=polite.PacingPolicy(min_delay=0.1, circuit_failures=3)) as crawl:
        working = await visit_some(crawl, [f"{A}/{n}" for n in range(9)], status=500)
        await asyncio.sleep(8)
        state = await crawl.look()
        working.cancel()

    assert reasons(state) == {"circuit": (1, 6, 0)}
    assert state["open_circuits"] == 1
    (circuit,) = state["circuits"]
    assert (circuit["scope"], circuit["failures"], circuit["openings"]) == (A, 3, 1)
    assert 0 < circuit["until_s"] < 600
    assert "3 failures in a row" in circuit["because"]
    assert "circuit" in state["notices"][0]["text"] or "failed" in state["notices"][0]["text"]


async def test_urls_wait_for_robots_txt_and_for_a_slot_to_fetch_it() -> None:
    transport = ScriptedTransport()
    transport.hold()
    async with watched(transport, frontier={"max_robots_fetches": 1}) as crawl:
        await crawl.frontier.put_many([f"{A}/1", f"{B}/1", f"{B}/2"])
        state = await crawl.look()

    assert reasons(state) == {"fetch_slot": (1, 2, 0), "fetching_robots": (1, 1, 0)}
    assert row_of(state, B)["since_s"] == pytest.approx(3.5, abs=1.1)


async def test_urls_wait_for_a_robots_txt_that_is_out_of_reach() -> None:
    async with watched({f"{A}/robots.txt": Reply(503, retry_after="900")}) as crawl:
        await crawl.frontier.put(f"{A}/1")
        await asyncio.sleep(30)
        state = await crawl.look()

    row = row_of(state, A)
    assert reasons(state) == {"unreachable": (1, 1, 0)}
    assert row["failures"] == 1
    assert row["since_s"] == pytest.approx(33.5, abs=0.1)
    assert 800 < row["until_s"] < 1_200
    assert row["because"] == "robots.txt: the server returned 5xx (status 503)"
    assert "out of reach" in state["notices"][0]["text"]


async def test_a_robots_txt_without_a_response_is_what_its_urls_wait_for() -> None:
    async with watched({f"{A}/robots.txt": Failed(Reason.CONNECTION_REFUSED)}) as crawl:
        await crawl.frontier.put(f"{A}/1")
        state = await crawl.look(0.1)

    row = row_of(state, A)
    assert (row["reason"], row["because"]) == ("unreachable", "robots.txt: the server refused the connection")


async def test_urls_wait_for_an_idle_worker_and_for_the_request_in_flight() -> None:
    async with watched({f"{B}/robots.txt": RULES}) as crawl:
        await crawl.frontier.put_many([f"{A}/1", f"{A}/2"])
        async with await anext(crawl.frontier) as permit:
            await crawl.frontier.put(f"{B}/1")
            await asyncio.sleep(10)
            state = await crawl.look()
            permit.report(status=200)

    assert reasons(state) == {"worker": (1, 1, 0), "in_flight": (1, 1, 0)}
    assert state["held"] == [{"url": f"{A}/1", "held_s": pytest.approx(13.5)}]
    assert state["notices"][-1]["text"].startswith("1 origin waits for an idle worker")


async def test_urls_wait_for_their_own_time() -> None:
    async with watched() as crawl:
        await crawl.frontier.put(f"{A}/1", not_before=1_700_009_000.0)
        state = await crawl.look()

    assert reasons(state) == {"not_before": (0, 1, 0)}


async def test_urls_wait_for_a_site_to_open() -> None:
    # The clock begins at 22:13 UTC.
    script = {f"{A}/robots.txt": Reply(200, b"User-agent: *\nVisit-time: 0200-0300\nAllow: /\n")}
    async with watched(script) as crawl:
        working = await visit_some(crawl, [f"{A}/1"], status=200)
        await asyncio.sleep(30)
        state = await crawl.look()
        working.cancel()

    row = row_of(state, A)
    assert reasons(state) == {"hours": (1, 1, 0)}
    assert "Visit-time 02:00-03:00 UTC" in row["because"]
    assert row["until_s"] > 3_600


@pytest.mark.parametrize("rounds", [1, 3])
async def test_urls_wait_for_a_scope_that_origins_share(rounds: int) -> None:
    pacing = polite.PacingPolicy(scopes=polite.Scopes(crawl=polite.ScopeLimit(delay=100.0)))
    async with watched(pacing=pacing) as crawl:
        working = await visit_some(crawl, [f"{B}/{n}" for n in range(9)], status=200)
        await asyncio.sleep(50 + 100 * rounds)
        state = await crawl.look()
        working.cancel()

    assert [row["reason"] for row in state["waiting"]] == ["shared_scope"]
    assert row_of(state, B)["scope"] == "crawl"


async def test_permits_wait_for_a_scope_that_origins_share() -> None:
    pacing = polite.PacingPolicy(scopes=polite.Scopes(crawl=polite.ScopeLimit(delay=100.0)))
    async with watched(pacing=pacing) as crawl:
        waiting = [asyncio.ensure_future(crawl.gate.acquire(f"{each}/1")) for each in (A, B)]
        await asyncio.sleep(150)
        state = await crawl.look()
        for each in waiting:
            each.cancel()

    assert reasons(state) == {"shared_scope": (0, 0, 2)}
    assert state["origins"][0]["scope"] == "crawl"


async def test_urls_that_a_file_keeps_are_counted(tmp_path: Any) -> None:
    transport = ScriptedTransport()
    transport.hold()
    store = {"store": str(tmp_path / "queue.sqlite"), "max_active_origins": 1}
    async with watched(transport, frontier=store) as crawl:
        await crawl.frontier.put_many([f"{A}/1", f"{B}/1", f"{B}/2"])
        state = await crawl.look()

    assert sum(urls for _, urls, _ in reasons(state).values()) == 3
    assert reasons(state)["stored"] == (0, 2, 0)


async def test_permits_wait_for_rules_and_for_turns() -> None:
    transport = ScriptedTransport()
    async with watched(transport) as crawl:
        transport.hold()
        waiting = [asyncio.ensure_future(crawl.gate.acquire(f"{A}/{n}")) for n in range(3)]
        first = await crawl.look()
        transport.let_go()
        await asyncio.sleep(5)
        second = await crawl.look()
        for each in waiting:
            each.cancel()

    assert reasons(first) == {"fetching_robots": (0, 0, 3)}
    assert reasons(second) == {"in_flight": (0, 0, 2)}
    row = row_of(second, A)
    assert (row["permits"], row["url"], row["in_flight"], row["rule"]) == (2, None, 1, None)
    assert second["gate"]["waiting"] == 2


async def test_a_frontiers_turns_are_not_counted_as_permits() -> None:
    async with watched() as crawl:
        working = await visit_some(crawl, [f"{A}/{n}" for n in range(9)], status=429)
        held = asyncio.ensure_future(crawl.gate.acquire(f"{B}/1"))
        await asyncio.sleep(5)
        # Younger than the frontier's own request.
        waiting = asyncio.ensure_future(crawl.gate.acquire(f"{B}/1"))
        state = await crawl.look()
        working.cancel()
        waiting.cancel()
        held.cancel()

    assert {reason: permits for reason, (_, _, permits) in reasons(state).items()} == {
        "back_off": 0,
        "in_flight": 1,
    }


async def test_the_longest_waits_come_first_and_each_reason_keeps_some() -> None:
    robots = {
        f"https://h{n}.test/robots.txt": Reply(200, b"User-agent: *\nCrawl-delay: %d\n" % (50 + n))
        for n in range(60)
    }
    robots[f"{A}/robots.txt"] = Reply(503, retry_after="20")
    async with watched(robots) as crawl:
        await crawl.frontier.put_many(
            [f"https://h{n}.test/{page}" for n in range(60) for page in range(2)] + [f"{A}/1"]
        )
        working = asyncio.create_task(work(crawl.frontier, status=200))
        await asyncio.sleep(5)
        state = await crawl.look(1.0)
        found = crawl.monitor.origins(reason="delay", containing="h5", limit=300)
        one = crawl.monitor.origins(reason=None, containing="https://h0.test/any", limit=300)
        none = crawl.monitor.origins(reason="delay", containing=A, limit=300)
        working.cancel()

    names = [row["origin"] for row in state["origins"]]
    assert names[0] == "https://h59.test"
    assert A in names
    assert len(names) == 26
    assert [row["origin"] for row in found["origins"]] == [f"https://h{n}.test" for n in range(59, 49, -1)]
    assert [row["origin"] for row in one["origins"]] == ["https://h0.test"]
    assert none["origins"] == []


async def test_a_walk_that_fails_is_logged_once_and_begun_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched() as crawl:
        await crawl.frontier.put(f"{A}/1")

        def broken(*_: object) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patched:
            patched.setattr(Survey, "_visit_circuits", broken)
            with caplog.at_level(logging.INFO):
                await crawl.look(10.0)
        state = await crawl.look()

    assert [each.message for each in caplog.records] == ["the status page failed"]
    assert state["survey"]["visited"] == 1


async def test_walks_end_when_nobody_looks_any_more() -> None:
    async with watched() as crawl:
        await crawl.look()
        await asyncio.sleep(60)
        age_s = crawl.monitor.state()["survey"]["age_s"]
        await asyncio.sleep(100)

        assert crawl.monitor.state()["survey"]["age_s"] == pytest.approx(age_s + 100)


async def test_a_stopped_survey_looks_no_more() -> None:
    async with watched() as crawl:
        await crawl.monitor.stop()
        crawl.monitor.want()
        await asyncio.sleep(10)

        assert crawl.monitor.state()["survey"]["age_s"] is None


async def test_a_walk_goes_on_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polite.status.survey._SLICE_S", 0.0)
    transport = ScriptedTransport()
    transport.hold()
    async with watched(transport) as crawl:
        await crawl.frontier.put_many([f"https://h{n}.test/" for n in range(1_000)])
        crawl.monitor.want()
        assert crawl.monitor.state()["survey"]["age_s"] is None
        await asyncio.sleep(0.1)
        assert crawl.monitor.state()["survey"]["age_s"] is None
        await asyncio.sleep(2)

        assert crawl.monitor.state()["survey"]["visited"] == 1_000


# The ring of queues.


def queue_of(name: str) -> OriginQueue:
    origin = Origin("https", name, None)
    return OriginQueue(origin, origin.robots)


def remove(queues: OriginQueues, queue: OriginQueue) -> None:
    for event in (QueueEvent.SEEK, QueueEvent.RULES_KNOWN):
        queue.move(event)
    queues.remove(queue)


def round_of(ring: Any) -> set[str]:
    visited = [ring.visit() for _ in range(len(ring))]
    return {queue.origin.host for queue in visited if queue is not None}


def test_a_ring_has_all_queues_while_they_come_and_go() -> None:
    queues = OriginQueues()
    first, second, third = map(queue_of, ("a.test", "b.test", "c.test"))
    queues.add(first)
    ring = queues.ring()
    queues.add(second)
    assert round_of(ring) == {"a.test", "b.test"}

    remove(queues, first)
    queues.add(third)
    assert round_of(ring) == {"b.test", "c.test"}
    assert len(ring) == 2

    queues.drop(ring)
    queues.add(queue_of("d.test"))
    assert round_of(ring) == {"b.test", "c.test"}


def test_a_ring_that_nobody_visits_stays_small() -> None:
    queues = OriginQueues()
    ring = queues.ring()
    stays = queue_of("stays.test")
    queues.add(stays)

    for n in range(10_000):
        queue = queue_of(f"h{n}.test")
        queues.add(queue)
        remove(queues, queue)

    assert len(ring) <= 1_010
    assert round_of(ring) == {"stays.test"}


async def test_a_page_costs_a_frontier_nothing_when_it_is_gone() -> None:
    async with watched() as crawl:
        await crawl.monitor.stop()
        queues: Any = crawl.frontier.parts.dispatcher._queues

        assert queues._rings == ()
        assert crawl.gate.services.listener.on_left is None
        await crawl.frontier.put(f"{A}/1")
        crawl.frontier.close()
        assert await fetch_all(crawl.frontier) == [f"{A}/1"]
