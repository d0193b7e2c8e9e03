"""A gate for threads decides and paces as the gate of a loop does, and its calls wait."""

import asyncio
import gc
import itertools
import threading
import time

import pytest

import polite
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.blocking.support import LIMIT_S, OTHER, PAGE, ROBOTS, Thread, opened
from tests.hasty_clock import HastyClock

RULES = b"User-agent: *\nDisallow: /private\nCrawl-delay: 7\n"


def until(condition) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.001)


def waiting(gate):
    return len(gate._thread._waiting)


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock()


@pytest.fixture
def gate(clock):
    with opened(ScriptedTransport({ROBOTS: Reply(200, RULES)}), clock=clock) as gate:
        yield gate


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://", polite.InvalidURL),
        ("https://site.test/private", polite.Disallowed),
        ("https://down.test/", polite.RobotsUnreachable),
    ],
)
def test_errors_are_those_of_the_gate_unchanged(url: str, error: type[Exception]):
    transport = ScriptedTransport({ROBOTS: Reply(200, RULES), "https://down.test/robots.txt": Reply(503)})
    with opened(transport) as gate, pytest.raises(error) as raised, gate.permit(url):
        pass
    assert type(raised.value) is error
    if isinstance(raised.value, polite.RobotsUnreachable):
        assert raised.value.retry_after_s > 0
        assert raised.value.decision.reason is polite.Reason.UNREACHABLE


def test_a_thread_that_would_wait_for_itself_is_refused(gate):
    with (
        gate.permit(PAGE),
        pytest.raises(polite.PermitMisused, match="leave that block first"),
        gate.permit(PAGE),
    ):
        pass


def test_a_permit_has_the_url_to_send_and_is_entered_and_reported_once(gate):
    permit = gate.permit("HTTPS://user:pw@SITE.test/a/../page#x")
    with pytest.raises(polite.PermitMisused, match="outside"):
        permit.report(status=200)
    with permit:
        assert (permit.url, permit.target, permit.valid) == (PAGE, polite.Target.of(PAGE), True)
        permit.require()
        with pytest.raises(polite.InvalidOption):
            permit.report(status="200")  # type: ignore[arg-type]
        permit.report(status=200)
        with pytest.raises(polite.PermitMisused, match="twice"):
            permit.report(status=200)
    assert not permit.valid
    with pytest.raises(polite.PermitMisused, match="entered twice"), permit:
        pass
    with pytest.raises(polite.PermitMisused, match="outside"):
        permit.require()


def test_many_threads_share_a_gate_and_every_gap_is_kept(clock: HastyClock):
    granted: dict[str, list[float]] = {}

    def crawl(site: int) -> None:
        for n in range(10):
            url = f"https://site{site % 4}.test/{n}"
            with gate.permit(url) as permit:
                granted.setdefault(url[:17], []).append(clock.now)
                permit.report(status=200)

    with opened(clock=clock) as gate:
        for thread in [Thread(lambda site=site: crawl(site)) for site in range(16)]:  # type: ignore[misc]
            thread.outcome()

    assert {len(times) for times in granted.values()} == {40}
    assert min(b - a for times in granted.values() for a, b in itertools.pairwise(times)) >= 1.0


def test_a_thread_that_ends_with_a_permit_open_leaves_it(gate):
    kept = []
    Thread(lambda: kept.append(gate.permit(PAGE).__enter__())).outcome()
    with gate.permit(PAGE):
        assert not kept[0].valid


def test_a_permit_that_is_dropped_is_left(gate):
    gate.acquire(PAGE)
    gc.collect()
    with gate.permit(PAGE) as permit:
        assert permit.valid


def test_closing_wakes_the_threads_that_wait():
    gate = opened()
    with gate.permit(PAGE):
        others = [Thread(lambda: gate.permit(PAGE).__enter__()) for _ in range(5)]
        until(lambda: waiting(gate) == 5)
        gate.close()
        for each in others:
            with pytest.raises(polite.GateClosed):
                each.outcome()


def test_a_closed_gate_refuses_and_lets_open_permits_end():
    gate = opened()
    permit = gate.acquire(PAGE)
    gate.close()
    gate.close()

    permit.report(status=200)
    permit.leave()
    assert not permit.valid
    with pytest.raises(polite.GateClosed, match="no decision for"):
        gate.check(PAGE)
    with pytest.raises(polite.GateClosed), gate.permit(PAGE):
        pass


@pytest.mark.parametrize("options", [{"robots": "no policy"}, {"store": 7}])
def test_what_opening_raises_is_raised_where_it_is_opened(options):
    before = set(threading.enumerate())
    with pytest.raises(polite.InvalidOption):
        opened(**options)
    until(lambda: set(threading.enumerate()) == before)


async def test_it_is_refused_in_a_running_loop():
    with pytest.raises(
        RuntimeError, match=r"polite\.blocking\.open_gate would block the .*asyncio\.to_thread"
    ):
        opened()

    gate = await asyncio.to_thread(opened)
    for call in (
        lambda: gate.check(PAGE),
        gate.permit(PAGE).__enter__,
        lambda: gate.acquire(PAGE),
        gate.close,
    ):
        with pytest.raises(RuntimeError, match="would block the event loop"):
            call()
    await asyncio.to_thread(gate.close)


def test_when_the_loop_breaks_down_no_thread_waits_for_ever():
    def break_down() -> None:
        raise SystemExit(3)

    transport = ScriptedTransport()
    transport.hold()
    gate = opened(transport)
    other = Thread(lambda: gate.check(PAGE))
    until(lambda: transport.asked)

    gate._thread.post(break_down)

    with pytest.raises(polite.GateClosed):
        other.outcome()
    with pytest.raises(polite.GateClosed):
        gate.check(PAGE)
    with pytest.raises(SystemExit):
        gate.close()


def test_a_gate_that_is_dropped_warns_and_ends_its_thread():
    before, gate = set(threading.enumerate()), opened()
    gate.check(PAGE)
    with pytest.warns(ResourceWarning, match="unclosed gate"):  # noqa: PT031
        del gate
        gc.collect()
    until(lambda: set(threading.enumerate()) == before)


def test_a_permit_that_came_as_its_wait_was_interrupted_is_given_back(gate, clock, monkeypatch):
    gate.check(PAGE)
    call = gate._thread.call

    def interrupted(*args):
        call(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(gate._thread, "call", interrupted)
        kept = gate.permit(PAGE)
        kept.__enter__()
    before = clock.now

    with gate.permit(PAGE) as permit:
        assert permit.valid
        assert clock.now == before


@pytest.mark.parametrize("left", [True, False])
def test_octets_of_a_permit_that_is_left_or_dropped_count(left: bool):
    with opened(pacing=polite.PacingPolicy(max_bytes=1_000_000)) as gate:
        permit = gate.permit(PAGE).enter()
        permit.received(400_000)
        permit.received(600_000)
        with pytest.raises(polite.InvalidOption):
            permit.received(-1)
        if left:
            permit.leave()
        del permit

        with pytest.raises(polite.OriginDeclined, match="1000000 octets came"):
            gate.permit(PAGE).enter()


def test_an_error_that_is_kept_keeps_no_permit_of_a_thread_that_has_ended():
    kept: list[object] = []

    def enter() -> None:
        kept.append(gate.permit(OTHER).__enter__())
        try:
            gate.permit(f"{PAGE}private").__enter__()
        except polite.Disallowed as error:
            kept.append(error)

    with opened(ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nDisallow: /")})) as gate:
        Thread(enter).outcome()

        with gate.permit(OTHER):
            assert len(kept) == 2
