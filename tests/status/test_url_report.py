"""Why one URL waits, or does not come. Nothing is fetched to say it."""

import asyncio
from typing import Any

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.status.support import watched
from tests.support import RULES, A, B, fetch_all

pytestmark = pytest.mark.virtual_time

SCRIPT = {f"{A}/robots.txt": RULES}


async def test_a_url_of_an_unknown_origin_causes_no_request() -> None:
    transport = ScriptedTransport(SCRIPT)
    async with watched(transport) as crawl:
        report = await crawl.monitor.urls.of(f"{A}/1")

    assert transport.asked == []
    assert report["verdict"].startswith("It does not come: it was never put")
    assert (report["task"], report["explanation"], report["queue"]) == ("never put", None, None)


async def test_a_url_that_robots_txt_disallows_does_not_come() -> None:
    async with watched(SCRIPT) as crawl:
        await crawl.frontier.put(f"{A}/private/x")
        working = asyncio.create_task(fetch_all(crawl.frontier))
        await asyncio.sleep(10)
        report = await crawl.monitor.urls.of(f"{A}/private/x")
        working.cancel()

    assert report["verdict"] == "It does not come: it is disallowed by Disallow: /private (line 2)."
    assert report["allowed"] is False
    assert "line 2" in report["explanation"]
    assert [each["kind"] for each in report["events"]] == ["Refused"]


async def test_a_url_that_waits_says_with_what_its_origin_waits() -> None:
    async with watched({f"{A}/robots.txt": Reply(200, b"User-agent: *\nCrawl-delay: 60\n")}) as crawl:
        await crawl.frontier.put_many([f"{A}/1", f"{A}/2", f"{A}/3"])
        working = asyncio.create_task(fetch_all(crawl.frontier))
        await asyncio.sleep(70)
        report = await crawl.monitor.urls.of(f"{A}/3")
        working.cancel()

    assert (
        report["verdict"]
        == "Unless it has ended, it waits with its origin: for the delay between two requests."
    )
    assert report["queue"]["urls"] == 2
    assert "Crawl-delay 60 s" in report["explanation"]


async def test_a_url_in_flight_and_one_that_has_ended() -> None:
    async with watched() as crawl:
        await crawl.frontier.put(f"{A}/1")
        async with await anext(crawl.frontier) as permit:
            inside = await crawl.monitor.urls.of(f"{A}/1")
            permit.report(status=200)
        ended = await crawl.monitor.urls.of(f"{A}/1")

    assert inside["verdict"] == "It is in flight: a worker has its permit."
    assert ended["verdict"].startswith("It has ended, or waits in the store")


async def test_a_url_whose_robots_txt_is_out_of_reach() -> None:
    async with watched({f"{A}/robots.txt": Reply(503, retry_after="600")}) as crawl:
        await crawl.frontier.put(f"{A}/1")
        await asyncio.sleep(30)
        waiting = await crawl.monitor.urls.of(f"{A}/1")
        with pytest.raises(polite.RobotsUnreachable):
            await crawl.gate.acquire(f"{A}/2")
        other = await crawl.monitor.urls.of(f"{A}/2")

    assert "robots.txt was out of reach" in waiting["verdict"]
    assert waiting["queue"]["failures"] == 1
    assert "RobotsFetched" in [each["kind"] for each in waiting["events"]]
    assert other["task"] == "never put"


async def test_a_gate_without_a_frontier() -> None:
    from polite.status.monitor import Monitor
    from tests.support import scripted_gate

    async with scripted_gate({f"{A}/robots.txt": RULES, f"{B}/robots.txt": Reply(500)}) as gate:
        monitor = Monitor(gate, None)
        unknown = await monitor.urls.of(f"{A}/1")
        await gate.check(f"{A}/1")
        await gate.check(f"{B}/1")
        known, away = await monitor.urls.of(f"{A}/1"), await monitor.urls.of(f"{B}/1")
        monitor.want()
        state = monitor.state()
        await monitor.stop()

    assert unknown["verdict"].startswith("Nothing is known of its origin")
    assert known["verdict"] == "It may be fetched when its turn comes."
    assert away["verdict"].startswith("It may not be fetched for now")
    assert state["frontier"] is None


async def test_a_store_that_does_not_say_whether_it_knows_the_url(tmp_path: Any) -> None:
    async with watched(frontier={"store": str(tmp_path / "queue.sqlite")}) as crawl:
        await crawl.frontier.put(f"{A}/1")
        put, other = await crawl.monitor.urls.of(f"{A}/1"), await crawl.monitor.urls.of(f"{A}/2")
        store: Any = crawl.frontier.parts.store

        def silent(*_: object, **__: object) -> Any:
            return asyncio.get_running_loop().create_future()

        def broken(*_: object, **__: object) -> Any:
            raise polite.StoreFailed("the disk is full")

        store.seen = silent
        unknown = await crawl.monitor.urls.of(f"{A}/1")
        store.seen = broken
        failed = await crawl.monitor.urls.of(f"{A}/1")
        del store.seen

    assert (put["task"], other["task"]) == ("put", "never put")
    assert (unknown["task"], failed["task"]) == ("unknown", "unknown")


async def test_a_url_that_is_none_is_refused() -> None:
    async with watched() as crawl:
        with pytest.raises(polite.InvalidURL):
            await crawl.monitor.urls.of("mailto:joe@example.com")
