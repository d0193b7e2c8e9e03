"""The gate as a crawler uses it: what may be fetched, what open_gate accepts, events, explanations, and the end.

A price or a licence that a server asks for is told, and neither retried nor paid.
"""

import asyncio
import copy
import gc
from http import HTTPStatus
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

import polite
from polite.events import (
    BackedOff,
    Dropped,
    Event,
    Granted,
    Left,
    LicenseRequired,
    PaymentRequired,
    PermitDelayed,
    Refused,
    Retried,
    RobotsFetched,
)
from polite.origin import Origin
from polite.robots.exchange import Failed, Reply
from polite.robots.rules import RuleSet
from polite.stores.memory import MemoryStore
from polite.testing import LoopClock, ScriptedTransport
from tests.gate.support import AGENT, PAGE, PRIVATE, ROBOTS, RULES, SITE, opened, visit
from tests.support import now, scripted_gate


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


async def test_a_refused_url_is_named_with_the_line_that_decides_and_takes_no_turn() -> None:
    async with opened() as (gate, _):
        await gate.check(PAGE)
        await asyncio.sleep(10)
        start = now()
        with pytest.raises(polite.Disallowed, match="line 2") as refusal:
            await visit(gate, PRIVATE)

        assert await visit(gate) == start
    assert refusal.value.decision.reason is polite.Reason.RULE
    assert not isinstance(refusal.value, polite.RobotsUnreachable)


async def test_an_unreachable_robots_txt_says_when_to_retry() -> None:
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


async def test_listeners_are_told_what_happens() -> None:
    events: list[Event] = []

    async with opened(listener=events.append) as (gate, _):
        await visit(gate, status=503, Retry_After="9")
        with pytest.raises(polite.Disallowed):
            await visit(gate, PRIVATE)

    assert events == [
        RobotsFetched(SITE, "found", "OK", 200, 0, 0.0, 86_400.0),
        PermitDelayed(PAGE, SITE, 1.0, "min_delay 1 s"),
        Granted(PAGE, 1.0, SITE),
        BackedOff(SITE, 503, 9.0, "status 503, Retry-After 9 s"),
        Left(PAGE, 503, 0.0, 0.0),
        Refused(PRIVATE, "RULE", 2, None, "Disallow: /private"),
    ]


@pytest.mark.parametrize("url", ["", "//site.test/", "https://si\x00te.test/", "x" * 1_000_000])
async def test_a_url_that_is_none_is_refused_at_once(url: str) -> None:
    async with opened() as (gate, transport):
        for question in (gate.check, gate.explain, gate.acquire):
            with pytest.raises(polite.InvalidURL):
                await question(url)
    assert transport.asked == []


async def test_l9_a_transport_for_a_further_scheme_can_be_registered() -> None:
    gopher = ScriptedTransport({"gopher://site.test/robots.txt": Reply(200, b"User-agent: *\nDisallow: /0")})
    async with polite.open_gate(AGENT, transports={"gopher": gopher}, clock=LoopClock()) as gate:
        answers = [bool(await gate.check(f"gopher://site.test/{kind}")) for kind in "01"]
    assert (answers, gopher.closed) == ([False, True], 1)


async def test_a_closed_gate_raises_gate_closed() -> None:
    async with opened() as (gate, _):
        pass
    for question in (gate.check(PAGE), gate.explain(PAGE), visit(gate)):
        with pytest.raises(polite.GateClosed, match="site.test"):
            await question


async def test_a_request_that_waits_when_the_gate_closes_raises_gate_closed() -> None:
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


@pytest.mark.parametrize("value", [5, {"http": 5}])
@pytest.mark.parametrize("option", ["throttle", "clock", "listener", "addresses", "recrawl", "transports"])
async def test_an_option_that_cannot_be_what_it_should_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(polite.InvalidOption, match=option):
        async with polite.open_gate(AGENT, **{option: value}):
            pass


class OwnTransport:
    def __init__(self, answer: Any) -> None:
        self.get, self.close = AsyncMock(return_value=answer), AsyncMock()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "OwnTransport.get returned None: a Reply or a Failed of polite.ports is needed"),
        (Reply("200"), "OwnTransport.get returned nonsense: Reply.status is '200'"),
        (Reply(200, "User-agent: *"), "OwnTransport.get returned nonsense: Reply.body is 'User-agent: *'"),
        (Failed("timeout"), "OwnTransport.get returned nonsense: Failed.reason is 'timeout'"),
    ],
)
async def test_a_transport_that_fails_or_returns_nonsense_is_named_and_the_url_is_denied(answer, message):
    async with opened(OwnTransport(answer)) as (gate, _):  # type: ignore[arg-type]
        with pytest.raises(polite.RobotsUnreachable) as refusal:
            await visit(gate)
    assert message in str(refusal.value)
    assert refusal.value.decision.cause is polite.Reason.INTERNAL_ERROR


def test_a_refusal_that_only_an_option_can_end_names_it() -> None:
    refused = RuleSet.deny_all(polite.Reason.UNREACHABLE, cause=polite.Reason.ADDRESS_REFUSED).decide("/")
    assert "until FetchPolicy.allow_private changes" in str(refused)


async def test_a_script_a_listener_and_a_frontiers_gate_of_the_wrong_kind_are_refused_by_name() -> None:
    async def listener(event: Event) -> None: ...

    with pytest.raises(polite.InvalidOption, match=f"the script of {ROBOTS} must be a Reply"):
        ScriptedTransport({ROBOTS: "User-agent: *"})  # type: ignore[dict-item]
    with pytest.raises(polite.InvalidOption, match="frontier: gate must be a Gate"):
        async with polite.open_frontier(cast("polite.Gate", None)):
            pass
    with pytest.raises(polite.InvalidOption, match="no coroutine function"):
        async with scripted_gate(ScriptedTransport(), listener=listener):
            pass


@pytest.mark.parametrize(
    ("opening", "uses"),
    [
        (lambda: polite.open_gate(AGENT), ["permit", "check", "acquire", "close", "counters"]),
        (lambda: polite.open_session(AGENT), ["get", "closed"]),
        (lambda: polite.open_frontier(cast("polite.Gate", None)), ["put", "join"]),
    ],
)
async def test_the_first_use_of_what_was_not_opened_by_a_block_says_so(opening, uses):
    unopened = opening()
    said = r"^polite\.open_\w+\(\.\.\.\) opens nothing by itself: async with polite\.open_(\w+)\(\.\.\.\) as \1: \.\.\."

    for use in uses:
        with pytest.raises(AttributeError, match=rf"{said} \.{use}$"):
            getattr(unopened, use)
        with pytest.raises(AttributeError, match=rf"{said} \.{use}$"):
            setattr(unopened, use, None)
    for wrong in (unopened.__await__, unopened.__enter__, unopened.__aiter__, lambda: copy.copy(unopened)):
        with pytest.raises(TypeError, match=said):
            wrong()


async def test_what_was_opened_opens_once() -> None:
    opening = polite.open_gate(AGENT)
    async with opening:
        pass
    with pytest.raises(TypeError, match=r"polite\.open_gate\(\.\.\.\) returns opens once"):
        await opening.__aenter__()


async def test_on_a_loop_in_virtual_time_a_gate_follows_that_time_by_itself() -> None:
    site = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nCrawl-delay: 60")})
    async with polite.open_gate(AGENT, transports={"https": site}) as gate:
        for _ in range(3):
            await visit(gate, PAGE)
    assert now() == 180.0


async def test_explain_tells_everything_that_decides() -> None:
    async with opened() as (gate, _):
        await visit(gate)
        explanation = await gate.explain(PRIVATE)
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

    assert "failed once; the last good copy" in text
    assert "the last good copy decides (no such name)" in text
    assert "turn: in 1.0 s" in text


async def test_what_is_to_be_called_at_the_close_is_called_once_and_its_object_held_weakly(caplog):
    class Listening:
        def closed(self) -> None:
            told.append(self)

    told: list[object] = []
    kept, dropped = Listening(), Listening()
    async with polite.open_gate("TestBot/1.0", clock=LoopClock()) as gate:
        gate.on_close(lambda: 1 / 0)
        gate.on_close(dropped.closed)
        gate.on_close(kept.closed)
        del dropped
        gc.collect()
        assert not told
        await gate.close()
        assert told == [kept]

    gate.on_close(kept.closed)
    assert told == [kept, kept]
    assert "a callback of Gate.on_close failed" in caplog.text


class SlowStore(MemoryStore):
    def __init__(self, takes_s: float) -> None:
        super().__init__()
        self._takes_s, self.saving = takes_s, asyncio.Event()
        self.saved: list[Origin] = []

    async def save(self, origin, snapshot):
        self.saving.set()
        await asyncio.sleep(self._takes_s)
        self.saved.append(origin)


@pytest.mark.parametrize("is_waiter_cancelled", [True, False])
@pytest.mark.parametrize(("takes_s", "is_saved", "closed_s"), [(0.2, True, 0.2), (1e6, False, 5.0)])
async def test_a_robots_txt_that_was_fetched_is_kept_though_the_gate_closes(
    is_waiter_cancelled: bool, takes_s: float, is_saved: bool, closed_s: float
) -> None:
    store, origin = SlowStore(takes_s), Origin.of("https://a.test")
    async with scripted_gate(transports={"https": ScriptedTransport()}, store=store) as gate:
        waiter = asyncio.create_task(gate.check("https://a.test/"))
        await store.saving.wait()
        closing_at = now()
        if is_waiter_cancelled:
            waiter.cancel()
            await asyncio.sleep(0)
    closed_at = now()
    (ended,) = await asyncio.gather(waiter, return_exceptions=True)

    assert isinstance(ended, asyncio.CancelledError if is_waiter_cancelled else polite.GateClosed)
    assert store.saved == ([origin] if is_saved else [])
    assert closed_at - closing_at == pytest.approx(closed_s, abs=0.01)


CHALLENGE = 'License error="invalid_token"'
DEMANDS: list[tuple[int, dict[str, str], Any]] = [
    (402, {"crawler-price": "USD 0.01"}, PaymentRequired(PAGE, "https://site.test", "USD 0.01")),
    (401, {"WWW-Authenticate": CHALLENGE}, LicenseRequired(PAGE, "https://site.test", 401, CHALLENGE)),
    (402, {"www-authenticate": CHALLENGE}, LicenseRequired(PAGE, "https://site.test", 402, CHALLENGE)),
]


@pytest.mark.parametrize(("status", "headers", "event"), DEMANDS)
@pytest.mark.parametrize("recrawl", [None, polite.RecrawlPolicy()])
async def test_a_demand_is_told_and_delays_nothing(status, headers, event, recrawl):
    events: list[Any] = []
    async with opened(listener=events.append, recrawl=recrawl) as (gate, _):
        async with gate.permit(PAGE) as permit:
            permit.report(status=HTTPStatus(status), headers=iter(headers.items()))
            first = now()

        assert permit.demand is not None
        assert await visit(gate) == pytest.approx(first + 1)
        assert gate.counters.slowed == 0

    assert [each for each in events if type(each) is type(event)] == [event]


class PageFailed(Exception):
    """What `raise_for_status` raises."""


def fail() -> None:
    raise PageFailed


@pytest.mark.parametrize(("status", "headers", "_"), DEMANDS)
@pytest.mark.parametrize("how", ["retry", "error"])
async def test_a_task_that_meets_a_demand_is_not_sent_out_again(status, headers, _, how):
    events: list[Any] = []
    async with scripted_gate(listener=events.append) as gate:
        frontier = polite.Frontier(gate)
        await frontier.put(PAGE)
        frontier.close()
        given = 0
        async for permit in frontier:
            given += 1
            try:
                async with permit:
                    permit.report(status=status, headers=headers)
                    if how == "error":
                        fail()
                    assert not permit.retry()
            except PageFailed:
                pass

        assert (given, frontier.dropped, frontier.done) == (1, 1, 0)

    dropped = [each for each in events if isinstance(each, Dropped)]
    assert [(each.url, each.tries) for each in dropped] == [(PAGE, 1)]
    assert dropped[0].because.startswith("the server asks for a ")
    assert not [each for each in events if isinstance(each, Retried)]
