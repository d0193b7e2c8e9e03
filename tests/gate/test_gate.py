"""The gate as a crawler meets it: allowed first, then its turn; in virtual time, without a network."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

import polite
from polite.events import BackedOff, Event, Granted, PermitDelayed, Refused, RobotsFetched
from polite.robots.fetching.exchange import Ask, Failed, Reply
from polite.testing import LoopClock, ScriptedTransport

pytestmark = pytest.mark.virtual_time

AGENT = "TestBot/1.0 (+https://bot.test)"
ROBOTS = "https://site.test/robots.txt"
PAGE = "https://site.test/page"
RULES = b"User-agent: testbot\nDisallow: /private\nAllow: /private/open\n\nUser-agent: *\nDisallow: /\n"


@asynccontextmanager
async def opened(
    transport: ScriptedTransport | None = None, **options: Any
) -> AsyncIterator[tuple[polite.Gate, ScriptedTransport]]:
    transport = transport or ScriptedTransport({ROBOTS: Reply(200, RULES)})
    spoken = {"http": transport, "https": transport}
    options.setdefault("clock", LoopClock())
    async with polite.open_gate(AGENT, transports=spoken, **options) as gate:
        yield gate, transport


def now() -> float:
    return asyncio.get_running_loop().time()


async def visit(gate: polite.Gate, url: str = PAGE, status: int | None = 200, **headers: str) -> float:
    """Fetch one page: its turn came when this returns says."""
    async with gate.permit(url) as permit:
        granted = now()
        if status is not None:
            permit.report(status=status, headers={name.replace("_", "-"): v for name, v in headers.items()})
    return granted


async def test_check_answers_by_the_rules_of_the_origin() -> None:
    async with opened() as (gate, transport):
        allowed = await gate.check(PAGE)
        denied = await gate.check("https://SITE.test:443/private/x")
        reopened = await gate.check("https://site.test/private/open")

    assert (bool(allowed), bool(denied), bool(reopened)) == (True, False, True)
    assert denied.rule == polite.Rule(allows=False, pattern="/private", line=2)
    assert transport.asked == [ROBOTS]


async def test_t1_permit_gives_the_url_as_it_must_be_sent() -> None:
    async with opened() as (gate, _), gate.permit("HTTPS://u:pw@Site.TEST:443/a/../b?q#part") as permit:
        assert permit.url == "https://site.test/b?q"


async def test_permit_refuses_what_is_disallowed_and_says_by_which_line() -> None:
    async with opened() as (gate, _):
        with pytest.raises(polite.Disallowed, match="line 2") as refusal:
            await visit(gate, "https://site.test/private")

    assert refusal.value.decision.reason is polite.Reason.RULE
    assert not isinstance(refusal.value, polite.RobotsUnreachable)


async def test_a_refused_url_takes_no_turn() -> None:
    async with opened() as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(10)
        start = now()
        for _ in range(5):
            with pytest.raises(polite.Disallowed):
                await visit(gate, "https://site.test/private")

        assert await visit(gate) == start


async def test_an_unreachable_robots_txt_says_when_to_come_back() -> None:
    transport = ScriptedTransport({ROBOTS: [Reply(500), Reply(200, RULES)]})

    async with opened(transport) as (gate, _):
        with pytest.raises(polite.RobotsUnreachable) as refusal:
            await visit(gate)
        await asyncio.sleep(refusal.value.retry_after_s)
        await visit(gate)

    assert refusal.value.decision.reason is polite.Reason.UNREACHABLE
    assert refusal.value.decision.cause is polite.Reason.SERVER_ERROR
    assert 5.0 <= refusal.value.retry_after_s <= 6.25
    assert transport.asked == [ROBOTS, ROBOTS]


async def test_robots_txt_counts_as_a_hit() -> None:
    async with opened() as (gate, _):
        start = now()

        assert await visit(gate) == start + 1.0


async def test_t3_requests_keep_min_delay() -> None:
    async with opened(pacing=polite.PacingPolicy(min_delay=2.5)) as (gate, _):
        times = await asyncio.gather(*(visit(gate) for _ in range(5)))

    assert sorted(times) == pytest.approx([2.5, 5.0, 7.5, 10.0, 12.5])


@pytest.mark.parametrize(
    ("asked", "max_crawl_delay", "gap", "because"),
    [
        ("0.5", 300.0, 1.0, "min_delay 1 s"),
        ("4", 300.0, 4.0, "Crawl-delay 4 s"),
        ("1.5", 300.0, 1.5, "Crawl-delay 1.5 s"),
        ("900", 60.0, 60.0, "Crawl-delay 900 s, held to max_crawl_delay 60 s"),
        ("nan", 300.0, 1.0, "min_delay 1 s"),
    ],
)
async def test_t3_crawl_delay_and_min_delay_give_the_larger(
    asked: str, max_crawl_delay: float, gap: float, because: str
) -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, f"User-agent: *\nCrawl-delay: {asked}\n".encode())})
    pacing = polite.PacingPolicy(max_crawl_delay=max_crawl_delay)

    async with opened(transport, pacing=pacing) as (gate, _):
        times = sorted(await asyncio.gather(*(visit(gate) for _ in range(3))))
        explanation = await gate.explain(PAGE)

    assert times == pytest.approx([gap, 2 * gap, 3 * gap])
    assert explanation.pause.because == because
    assert because in str(explanation)


async def test_t3_request_rate_is_a_delay_too() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nRequest-rate: 1/5\n")})

    async with opened(transport) as (gate, _):
        times = sorted(await asyncio.gather(*(visit(gate) for _ in range(2))))

    assert times == pytest.approx([5.0, 10.0])


async def test_a_turn_is_counted_from_the_report() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            await asyncio.sleep(3)
            permit.report(status=200)
            reported = now()
            await asyncio.sleep(0.25)
        following = await visit(gate)

    assert following == pytest.approx(reported + 1.0)


async def test_one_request_of_an_origin_is_under_way_at_a_time() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=200)
            second = asyncio.create_task(visit(gate))
            await asyncio.sleep(7)
            left = now()
        assert await second == left


async def test_with_anchor_end_a_turn_is_counted_from_the_end() -> None:
    pacing = polite.PacingPolicy(anchor=polite.Anchor.END)

    async with opened(pacing=pacing) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=200)
            await asyncio.sleep(3)
            left = now()
        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_a_permit_left_without_a_report_counts_from_its_end() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE):
            await asyncio.sleep(3)
            left = now()
        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_a_permit_left_by_an_exception_frees_its_place() -> None:
    async with opened() as (gate, _):
        with pytest.raises(ZeroDivisionError):
            async with gate.permit(PAGE):
                raise ZeroDivisionError
        left = now()

        assert await visit(gate) == pytest.approx(left + 1.0)


async def test_other_origins_do_not_wait() -> None:
    async with opened() as (gate, _):
        start = now()
        times = await asyncio.gather(*(visit(gate, f"https://host{n}.test/") for n in range(50)))

    assert set(times) == {start + 1.0}


@pytest.mark.parametrize("status", [429, 503])
async def test_t4_retry_after_moves_the_origins_next_turn(status: int) -> None:
    async with opened() as (gate, _):
        first = await visit(gate, status=status, Retry_After="120")

        assert await visit(gate) == pytest.approx(first + 120)


async def test_t4_retry_after_may_be_a_date_in_any_spelling_of_the_field() -> None:
    clock = LoopClock(epoch=784_111_777.0)

    async with opened(clock=clock) as (gate, _):
        await visit(gate, status=503, retry_after="Sun, 06 Nov 1994 08:50:37 GMT")

        assert await visit(gate) == pytest.approx(60)


@pytest.mark.parametrize("value", ["soon", "-5", "", "1e3", "\udcff"])
async def test_t4_a_retry_after_that_says_nothing_leaves_the_back_off(value: str) -> None:
    async with opened() as (gate, _):
        first = await visit(gate, status=429, Retry_After=value)

        assert 10.0 <= await visit(gate) - first <= 12.5


async def test_t4_refusals_in_a_row_are_waited_for_ever_longer() -> None:
    async with opened() as (gate, _):
        times = [await visit(gate, status=429) for _ in range(4)]

    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[1] > gaps[0] * 1.5
    assert gaps[2] > gaps[1] * 1.5


async def test_t4_a_429_on_robots_txt_allows_and_slows_the_origin_down() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(429, retry_after="30")})

    async with opened(transport) as (gate, _):
        assert await visit(gate) == pytest.approx(30)


async def test_t4_the_google_dialect_takes_a_429_for_a_server_error() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(429, retry_after="30")})

    async with opened(transport, robots=polite.RobotsPolicy(dialect=polite.GOOGLE)) as (gate, _):
        assert (await gate.check(PAGE)).reason is polite.Reason.UNREACHABLE


async def test_explain_tells_everything_that_decides() -> None:
    async with opened() as (gate, _):
        await visit(gate)
        explanation = await gate.explain("https://site.test/private")
        text = str(explanation)

    assert not explanation.decision
    assert explanation.wait_s == pytest.approx(1.0)
    assert explanation.outlook.scope == polite.Origin.of(PAGE)
    for part in ("https://site.test/private", "line 2", "min_delay 1 s", "turn: in 1.0 s", "status 200"):
        assert part in text


async def test_explain_tells_of_failures_and_the_copy_that_serves() -> None:
    transport = ScriptedTransport(
        {ROBOTS: [Reply(200, RULES), Failed(polite.Reason.DNS_NXDOMAIN, "no such name")]}
    )

    async with opened(transport) as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(86_400)
        text = str(await gate.explain(PAGE))

    assert "failed once in" in text
    assert "the last good copy decides (no such name)" in text
    assert "turn: in 1.0 s" in text


async def test_listeners_are_told_what_happens() -> None:
    events: list[Event] = []

    async with opened(listener=events.append) as (gate, _):
        await visit(gate, status=503, Retry_After="9")
        with pytest.raises(polite.Disallowed):
            await visit(gate, "https://site.test/private")

    assert [type(event) for event in events] == [RobotsFetched, PermitDelayed, Granted, BackedOff, Refused]
    assert events[0] == RobotsFetched("https://site.test", "found", "OK", 200, 0, 0.0, 86_400.0)
    assert events[1] == PermitDelayed(PAGE, "https://site.test", 1.0, "min_delay 1 s")
    assert events[2] == Granted(PAGE, 1.0)
    assert events[3] == BackedOff("https://site.test", 503, 9.0, "status 503, Retry-After 9 s")
    assert events[4] == Refused("https://site.test/private", "RULE", 2)


async def test_a_listener_that_fails_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Event) -> None:
        raise ZeroDivisionError(event)

    async with opened(listener=fail) as (gate, _):
        await visit(gate)

    assert "the listener failed" in caplog.text


async def test_a_wait_that_outlasts_the_rules_asks_for_them_again() -> None:
    stricter = Reply(200, b"User-agent: *\nDisallow: /page\n")
    transport = ScriptedTransport({ROBOTS: [Reply(200, RULES), stricter]})

    async with opened(transport) as (gate, _):
        await visit(gate, status=429, Retry_After="86400")
        with pytest.raises(polite.Disallowed):
            await visit(gate)

    assert transport.asked == [ROBOTS, ROBOTS]


async def test_an_origin_forgotten_while_a_request_waits_is_not_asked_again() -> None:
    async with opened(robots=polite.RobotsPolicy(max_origins=3)) as (gate, transport):
        await visit(gate)
        waiting = asyncio.create_task(visit(gate))
        await asyncio.sleep(0)
        for number in range(10):
            await gate.check(f"https://host{number}.test/")
        await waiting

    assert transport.asked.count(ROBOTS) == 1


async def test_credentials_reach_no_request_no_log_line_and_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport = ScriptedTransport({ROBOTS: [ZeroDivisionError("boom"), Reply(200, RULES)]})
    events: list[Event] = []
    url = "https://user:s3cret@site.test/private"
    texts = []

    with caplog.at_level(logging.DEBUG, logger="polite"):
        async with opened(transport, listener=events.append) as (gate, _):
            texts.append(repr(await gate.check(url)))
            await asyncio.sleep(60)
            texts.append(str(await gate.explain(url)))
            with pytest.raises(polite.Disallowed) as refusal:
                await visit(gate, url)
    with pytest.raises(polite.InvalidURL) as invalid:
        polite.Target.of("https://user:s3cret@site.test:99999/")

    everything = [
        caplog.text,
        *texts,
        str(refusal.value),
        repr(refusal.value),
        refusal.value.url,
        *map(str, events),
    ]
    everything += [str(invalid.value), repr(invalid.value), *transport.asked]
    assert "s3cret" not in " ".join(map(str, everything))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "page",
        "//site.test/",
        "https://",
        "https://site.test:65536/",
        "https://si\x00te.test/",
        "x" * 1_000_000,
    ],
)
async def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    async with opened() as (gate, transport):
        with pytest.raises(polite.InvalidURL):
            gate.permit(url)
        with pytest.raises(polite.InvalidURL):
            await gate.check(url)
        with pytest.raises(polite.InvalidURL):
            await gate.explain(url)

    assert transport.asked == []


async def test_a_scheme_that_nothing_speaks_is_denied() -> None:
    async with opened() as (gate, _):
        decision = await gate.check("gopher://site.test/1")

    assert decision.cause is polite.Reason.SCHEME_UNKNOWN


async def test_l9_a_transport_for_a_further_scheme_can_be_registered() -> None:
    gopher = ScriptedTransport(
        {"gopher://site.test/robots.txt": Reply(200, b"User-agent: *\nDisallow: /0\n")}
    )

    async with polite.open_gate(AGENT, transports={"gopher": gopher}, clock=LoopClock()) as gate:
        answers = [bool(await gate.check(f"gopher://site.test/{kind}")) for kind in "01"]

    assert answers == [False, True]
    assert gopher.closed == 1


@pytest.mark.parametrize("agent", ["", "Bot\r\nX: y", "/1.0", "(compatible)", "Böt\u2028/1"])
async def test_an_agent_that_cannot_be_sent_or_names_nobody_is_refused(agent: str) -> None:
    with pytest.raises(polite.InvalidUserAgent):
        async with polite.open_gate(agent):
            pass


@pytest.mark.parametrize("option", ["robots", "pacing", "fetching", "store"])
async def test_an_option_of_the_wrong_kind_is_refused(option: str) -> None:
    with pytest.raises(polite.InvalidOption, match=option):
        async with polite.open_gate(AGENT, **{option: 3}):  # type: ignore[arg-type]
            pass


async def test_a_store_on_a_network_is_refused_until_there_is_one() -> None:
    with pytest.raises(polite.InvalidOption, match="store='redis://localhost': not yet"):
        async with polite.open_gate(AGENT, store="redis://localhost"):
            pass


async def test_a_closed_gate_answers_nobody() -> None:
    async with opened() as (gate, _):
        pass

    for question in (gate.check(PAGE), gate.explain(PAGE), visit(gate)):
        with pytest.raises(polite.GateClosed, match="site.test"):
            await question


async def test_who_waits_when_the_gate_closes_gets_a_clear_error() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, RULES)})
    async with opened(transport) as (gate, _):
        await gate.check(PAGE)
        for_turn = [asyncio.create_task(visit(gate)) for _ in range(3)]
        transport.hold()
        for_robots = asyncio.create_task(gate.check("https://other.test/"))
        await asyncio.sleep(0.5)
        await gate.close()
        results = await asyncio.gather(*for_turn, for_robots, return_exceptions=True)

    assert [type(result) for result in results] == [polite.GateClosed] * 4
    assert [result.url for result in results[:3]] == [PAGE] * 3  # type: ignore[union-attr]


async def test_a_permit_given_before_the_gate_closed_may_be_finished() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            await gate.close()
            permit.report(status=200)
        await gate.close()


async def test_reporting_twice_is_an_error_and_hurries_nobody() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers={"Retry-After": "60"})
            with pytest.raises(polite.PermitMisused, match="twice"):
                permit.report(status=200)
            start = now()
        assert await visit(gate) == pytest.approx(start + 60)


async def test_a_permit_is_one_request() -> None:
    async with opened() as (gate, _):
        permit = gate.permit(PAGE)
        with pytest.raises(polite.PermitMisused, match="outside"):
            permit.report(status=200)
        async with permit:
            pass
        with pytest.raises(polite.PermitMisused, match="outside"):
            permit.report(status=200)
        with pytest.raises(polite.PermitMisused, match="twice"):
            async with permit:
                pass


@pytest.mark.parametrize("status", ["503", None, -1, 1000, 503.0, True])
async def test_what_is_no_status_is_refused_and_the_origin_rests_all_the_same(status: Any) -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            with pytest.raises(polite.InvalidOption, match="status"):
                permit.report(status=status)
            left = now()

        assert await visit(gate) == pytest.approx(left + 1.0)


@pytest.mark.parametrize("status", [0, 1, 99])
async def test_an_answer_below_100_is_a_failed_one_and_ends_no_worker(status: int) -> None:
    async with opened(pacing=polite.PacingPolicy(circuit_failures=2)) as (gate, _):
        for _ in range(2):
            await visit(gate, status=status)

        assert gate.counters.opened == 1


async def test_a_robots_txt_with_a_status_below_100_is_a_failed_answer() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(99, RULES)})

    async with opened(transport, pacing=polite.PacingPolicy(circuit_failures=1)) as (gate, _):
        decision = await gate.check(PAGE)

        assert (decision.allowed, decision.cause) == (False, polite.Reason.ODD_STATUS)
        assert gate.counters.opened == 1


async def test_retry_after_of_an_answer_below_100_is_obeyed() -> None:
    async with opened() as (gate, _):
        first = await visit(gate, status=99, Retry_After="120")

        assert await visit(gate) == pytest.approx(first + 120)
        assert gate.counters.slowed == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-AFTER": "30"},
        {b"Retry-After": b"30"},
        [("x", "y"), ("Retry-After", "30")],
        [(b"retry-after", b"30")],
        {"Retry-After": 30},
    ],
)
async def test_t4_retry_after_is_found_in_whatever_headers_a_client_has(headers: Any) -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=429, headers=headers)
            start = now()

        assert await visit(gate) == pytest.approx(start + 30)


async def test_a_task_cannot_wait_for_a_turn_that_it_has_itself() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE), gate.permit("https://other.test/"):
            with pytest.raises(polite.PermitMisused, match="leave that block first"):
                await visit(gate, "https://site.test/again")
        await visit(gate, "https://site.test/again")


async def test_with_concurrency_a_task_may_have_two_permits_of_an_origin() -> None:
    async with opened(pacing=polite.PacingPolicy(concurrency=2)) as (gate, _), gate.permit(PAGE):
        await visit(gate)


async def test_another_tasks_permit_is_waited_for() -> None:
    async with opened() as (gate, _):
        async with gate.permit(PAGE):
            waiting = asyncio.create_task(visit(gate))
            await asyncio.sleep(5)
        assert await waiting == pytest.approx(now())


async def test_cancelling_a_waiter_loses_nothing_and_hurries_nobody() -> None:
    async with opened() as (gate, _):
        tasks = [asyncio.create_task(visit(gate)) for _ in range(6)]
        await asyncio.sleep(1.5)
        for task in tasks[1:5]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [results[0], results[5]] == pytest.approx([1.0, 2.0])


async def test_too_many_waiting_requests_are_refused_by_name_of_the_option() -> None:
    async with opened(pacing=polite.PacingPolicy(max_waiting=2)) as (gate, _):
        await gate.check(PAGE)
        tasks = [asyncio.create_task(visit(gate)) for _ in range(3)]
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [isinstance(result, polite.Overloaded) for result in results] == [False, False, True]
    assert "max_waiting" in str(results[2])


async def test_urls_may_share_further_scopes() -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        return (target.origin, "the whole crawl")

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (gate, _):
        times = await asyncio.gather(*(visit(gate, f"https://host{n}.test/") for n in range(3)))

    # Each of three robots.txt and three pages is a hit of the whole crawl.
    assert max(times) == pytest.approx(5.0)


async def test_one_origins_retry_after_does_not_stop_what_other_origins_share() -> None:
    def scopes(target: polite.Target) -> tuple[object, ...]:
        return (target.origin, "the whole crawl")

    async with opened(pacing=polite.PacingPolicy(scopes=scopes)) as (gate, _):
        first = await visit(gate, status=429, Retry_After="600")
        elsewhere = await visit(gate, "https://other.test/")
        again = await visit(gate)

    assert elsewhere == pytest.approx(first + 2.0)
    assert again == pytest.approx(first + 600)


@pytest.mark.parametrize(
    ("min_delay", "crawl_delay", "gap"), [(5.0, b"", 5.0), (0.0, b"4", 4.0), (1.0, b"7", 7.0)]
)
async def test_t3_with_concurrency_grants_keep_the_delay_too(
    min_delay: float, crawl_delay: bytes, gap: float
) -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nCrawl-delay: " + crawl_delay)})
    times: list[float] = []

    async def slow_visit(gate: polite.Gate) -> None:
        async with gate.permit(PAGE) as permit:
            times.append(now())
            await asyncio.sleep(1.5 * gap)
            permit.report(status=200)

    async with opened(transport, pacing=polite.PacingPolicy(min_delay=min_delay, concurrency=3)) as (gate, _):
        await asyncio.gather(*(slow_visit(gate) for _ in range(6)))

    gaps = [after - before for before, after in pairwise(times)]
    assert min(gaps) >= gap - 1e-6
    assert times[1] - times[0] == pytest.approx(gap)


@pytest.mark.parametrize(
    "option",
    [{"throttle": 5}, {"clock": 5}, {"listener": 5}, {"transports": 5}, {"transports": {"http": 5}}],
    ids=lambda option: next(iter(option)),
)
async def test_an_option_that_cannot_be_what_it_should_is_refused_by_name(option: Any) -> None:
    with pytest.raises(polite.InvalidOption, match=next(iter(option))):
        async with polite.open_gate(AGENT, **option):
            pass


async def test_explain_names_the_request_rate_that_sets_the_delay() -> None:
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nRequest-rate: 1/30\n")})

    async with opened(transport) as (gate, _):
        text = str(await gate.explain(PAGE))

    assert "delay: 30 s between requests (Request-rate 1/30)" in text


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
    assert "not inferred to be missing: a page that cannot exist came to: status 404" in explained
    assert len(transport.asked) == 2


async def test_h7_the_copy_of_a_file_that_was_there_goes_on_deciding() -> None:
    transport = ScriptedTransport({ROBOTS: [Reply(200, RULES), Reply(500)]})

    async with opened(transport, robots=INFERRING) as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(2 * 86_400)
        decision = await gate.check("https://site.test/private")

    assert not decision.allowed
    assert transport.asked == [ROBOTS, ROBOTS]
