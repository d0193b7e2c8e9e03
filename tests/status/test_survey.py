"""Why each URL waits, which origins wait longest, and what is said of one URL: scenes of a frontier in virtual time."""

import asyncio
import json

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.status.support import watched
from tests.support import RULES, A, B, calls_of

pytestmark = pytest.mark.virtual_time


def reasons(state):
    return {row["reason"]: (row["origins"], row["urls"], row["permits"]) for row in state["waiting"]}


def row_of(state, origin):
    (row,) = [each for each in state["origins"] if each["origin"] == origin]
    return dict(row)


async def work(frontier, **report):
    async for permit in frontier:
        async with permit:
            permit.report(**report)


async def visit_some(crawl, urls, **report):
    await crawl.frontier.put_many(urls)
    return asyncio.create_task(work(crawl.frontier, **report))


@pytest.mark.parametrize(
    ("robots", "report", "sleep_s", "reason", "because", "until_s"),
    [
        # The clock begins at 22:13 UTC.
        ("Crawl-delay: 100", {"status": 200}, 130, "delay", "Crawl-delay 100 s", 66.5),
        ("", {"status": 429, "headers": {"Retry-After": "600"}}, 20, "back_off", "Retry-After 600 s", 576.5),
        ("Visit-time: 0200-0300", {"status": 200}, 30, "hours", "Visit-time 02:00-03:00 UTC", 13_566.5),
    ],
)
async def test_urls_wait_for_a_delay_a_back_off_and_the_hours_of_a_site(
    robots, report, sleep_s, reason, because, until_s
):
    body = f"User-agent: *\nDisallow: /no\nAllow: /\n{robots}\n"
    async with watched({f"{A}/robots.txt": Reply(200, body.encode())}) as crawl:
        working = await visit_some(crawl, [f"{A}/{n}" for n in range(5)], **report)
        await asyncio.sleep(sleep_s)
        state = await crawl.look()
        explained = await crawl.monitor.explain(f"{A}/3")
        working.cancel()

    row = row_of(state, A)
    assert reasons(state) == {reason: (1, row["urls"], 0)}
    assert (row["reason"], row["scope"], row["urls"] >= 4) == (reason, row["scope"], True)
    assert because in row["because"]
    assert row["until_s"] == pytest.approx(until_s, abs=30)
    assert row["since_s"] >= 3.5
    assert row["rule"] == {"allowed": True, "text": "allowed by Allow: / (line 3)", "line": 3}
    assert explained["verdict"].startswith("Unless it has ended, it waits with its origin: for ")
    assert explained["queue"]["urls"] == row["urls"]
    # It was a permit that was granted last, less than a minute ago, and not the beginning.
    assert not any("No permit was granted" in notice["text"] for notice in state["notices"])


async def test_a_rule_that_would_take_long_to_find_is_left_out():
    rules = "".join(f"Disallow: /*{n}*a*b*c*d$\n" for n in range(2_000))
    script = {f"{A}/robots.txt": Reply(200, f"User-agent: *\nCrawl-delay: 100\n{rules}".encode())}
    async with watched(script) as crawl:
        working = await visit_some(crawl, [f"{A}/{n}{'x' * 30_000}" for n in range(3)], status=200)
        await asyncio.sleep(130)
        state = await crawl.look()
        working.cancel()

    assert row_of(state, A)["rule"] is None


async def test_urls_wait_for_robots_txt_and_for_a_slot_to_fetch_it():
    transport = ScriptedTransport()
    transport.hold()
    async with watched(transport, frontier={"max_robots_fetches": 1}) as crawl:
        await crawl.frontier.put_many([f"{A}/1", f"{B}/1", f"{B}/2"])
        state = await crawl.look()
    assert reasons(state) == {"fetch_slot": (1, 2, 0), "fetching_robots": (1, 1, 0)}
    assert row_of(state, B)["since_s"] == pytest.approx(3.5, abs=1.1)


async def test_urls_wait_for_a_robots_txt_that_is_out_of_reach():
    async with watched({f"{A}/robots.txt": Reply(503, retry_after="900")}) as crawl:
        await crawl.frontier.put(f"{A}/1")
        await asyncio.sleep(30)
        state = await crawl.look()
        waiting = await crawl.monitor.explain(f"{A}/1")

    row = row_of(state, A)
    assert reasons(state) == {"unreachable": (1, 1, 0)}
    assert row["failures"] == waiting["queue"]["failures"] == 1
    assert row["since_s"] == pytest.approx(33.5, abs=0.1)
    assert 800 < row["until_s"] < 1_200
    assert row["because"] == "robots.txt: the server returned 5xx (status 503)"
    assert "out of reach" in state["notices"][0]["text"]
    assert "robots.txt was out of reach" in waiting["verdict"]
    assert "RobotsFetched" in [each["kind"] for each in waiting["events"]]


async def test_an_error_that_says_nothing_about_robots_txt_is_not_told_as_one_of_it():
    def scopes(target):
        return (target.origin, 1 / target.path.count("robots"))

    async with watched(pacing=polite.PacingPolicy(scopes=scopes)) as crawl:
        await crawl.frontier.put(f"{A}/1")
        state = await crawl.look()

    assert reasons(state) == {"error": (1, 1, 0)}
    assert row_of(state, A)["failures"] == 0
    assert "got ZeroDivisionError('division by zero')" in row_of(state, A)["because"]


async def test_urls_wait_for_an_idle_worker_and_for_the_request_in_flight():
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


async def test_urls_and_permits_wait_for_a_scope_that_origins_share():
    pacing = polite.PacingPolicy(scopes=polite.Scopes(crawl=polite.ScopeLimit(delay=100.0)))
    async with watched(pacing=pacing) as crawl:
        working = await visit_some(crawl, [f"{B}/{n}" for n in range(9)], status=200)
        waiting = asyncio.ensure_future(crawl.gate.acquire(f"{A}/1"))
        await asyncio.sleep(250)
        state = await crawl.look()
        working.cancel()
        waiting.cancel()

    assert [(row["reason"], row["permits"]) for row in state["waiting"]] == [("shared_scope", 1)]
    assert row_of(state, B)["scope"] == "crawl"


async def test_permits_wait_for_rules_and_for_turns():
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


async def test_the_longest_waits_come_first_and_each_reason_keeps_some():
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
        found = crawl.monitor.survey.longest(reason="delay", containing="h5", limit=300)
        one = crawl.monitor.survey.longest(reason=None, containing="https://h0.test/any", limit=300)
        none = crawl.monitor.survey.longest(reason="delay", containing=A, limit=300)
        working.cancel()

    names = [row["origin"] for row in state["origins"]]
    assert names[0] == "https://h59.test"
    assert A in names
    assert len(names) == 26
    assert [row["origin"] for row in found] == [f"https://h{n}.test" for n in range(59, 49, -1)]
    assert ([row["origin"] for row in one], none) == (["https://h0.test"], [])


async def test_a_look_is_bounded_and_the_oldest_origins_come_first(monkeypatch):
    monkeypatch.setattr("polite.status.survey._LOOK_S", 0.0)
    transport = ScriptedTransport()
    transport.hold()
    async with watched(transport) as crawl:
        await crawl.frontier.put_many([f"https://h{n}.test/" for n in range(200)])
        state = crawl.monitor.state()
        last = crawl.monitor.survey.longest(limit=9, containing="https://h199.test/x")

    assert (state["survey"]["visited"], state["survey"]["left_out"]) == (64, 136)
    assert reasons(state)["unseen"] == (136, 136, 0)
    assert sum(urls for _, urls, _ in reasons(state).values()) == 200
    assert [row["origin"] for row in last] == ["https://h199.test"]


@pytest.mark.slow("50,000 origins")
async def test_an_answer_takes_few_calls_however_many_origins_there_are():
    transport = ScriptedTransport()
    transport.hold()
    async with watched(transport) as crawl:
        await crawl.frontier.put_many([f"https://h{n}.test/" for n in range(50_000)])
        states = []
        calls = calls_of(lambda: states.append(crawl.monitor.state(0)))
        state = states[0]

    assert 0 < state["survey"]["visited"] < 50_000
    assert calls < 20_000
    assert len(json.dumps(state)) < 100_000


# One URL. Nothing is fetched to say it.


async def test_a_url_is_unknown_disallowed_in_flight_or_ended():
    transport = ScriptedTransport({f"{A}/robots.txt": RULES})
    async with watched(transport) as crawl:
        unknown = await crawl.monitor.explain(f"{A}/1")
        asked = list(transport.asked)
        await crawl.frontier.put_many([f"{A}/private/x", f"{A}/1"])
        async with await anext(crawl.frontier) as permit:
            inside = await crawl.monitor.explain(f"{A}/1")
            permit.report(status=200)
        ended = await crawl.monitor.explain(f"{A}/1")
        refused = await crawl.monitor.explain(f"{A}/private/x")

    assert asked == []
    assert unknown["verdict"].startswith("It does not come: it was never put")
    assert (unknown["task"], unknown["explanation"], unknown["queue"]) == ("never put", None, None)
    assert inside["verdict"] == "It is in flight: a worker has its permit."
    assert ended["verdict"].startswith("It has ended, or waits in the store")
    assert refused["verdict"] == "It does not come: it is disallowed by Disallow: /private (line 2)."
    assert refused["allowed"] is False
    assert "line 2" in refused["explanation"]
    assert [each["kind"] for each in refused["events"]] == ["Refused"]
