"""Anything is cancelled or fails at any step: no caller hangs, nothing leaks, and nothing disallowed is allowed."""

import asyncio
import itertools

import pytest

import polite
from polite.robots.exchange import Ask, Failed, Reply
from polite.testing import ScriptedTransport
from tests.support import scripted_gate

pytestmark = pytest.mark.virtual_time

ALLOWED, DENIED = "https://site.test/page", "https://site.test/private"
RULES = Reply(200, b"User-agent: *\nDisallow: /private\n")


class SteppingTransport:
    """Takes several steps of the loop for each answer, redirects once, and fails at the step it is told to."""

    def __init__(self, fail_at: int | None = None, failure: BaseException | None = None) -> None:
        self.steps = itertools.count()
        self.fail_at = fail_at
        self.failure = failure

    async def get(self, ask: Ask) -> Reply | Failed:
        for _ in range(3):
            if next(self.steps) == self.fail_at and self.failure is not None:
                raise self.failure
            await asyncio.sleep(0)
        return RULES if ask.target.path == "/moved" else Reply(301, location="/moved")

    async def close(self) -> None:
        await asyncio.sleep(0)


async def visit(gate: polite.Gate, url: str) -> str:
    async with gate.permit(url) as permit:
        await asyncio.sleep(0)
        permit.report(status=200)
        await asyncio.sleep(0)
    return url


async def expect_a_healthy_gate(gate: polite.Gate) -> None:
    """After whatever happened: what is allowed gets its turn, what is not is refused, and nobody is left over."""
    async with asyncio.timeout(10_000):
        while True:
            try:
                await visit(gate, ALLOWED)
                break
            except polite.RobotsUnreachable as refusal:
                await asyncio.sleep(refusal.retry_after_s)
        with pytest.raises(polite.Disallowed):
            await visit(gate, DENIED)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not others


@pytest.mark.parametrize("steps", range(40))
async def test_cancelling_everyone_after_any_number_of_steps_leaves_a_healthy_gate(steps: int) -> None:
    transport = SteppingTransport()

    async with scripted_gate(transport) as gate:
        tasks = [asyncio.create_task(visit(gate, url)) for url in (ALLOWED, DENIED) * 3]
        for _ in range(steps):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert DENIED not in results
        await expect_a_healthy_gate(gate)


@pytest.mark.parametrize("steps", range(0, 40, 3))
@pytest.mark.parametrize("victim", range(3))
async def test_cancelling_one_request_does_not_disturb_others(steps: int, victim: int) -> None:
    async with scripted_gate(SteppingTransport()) as gate:
        tasks = [asyncio.create_task(visit(gate, ALLOWED)) for _ in range(3)]
        for _ in range(steps):
            await asyncio.sleep(0)
        tasks[victim].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)

        assert [r for number, r in enumerate(results) if number != victim] == [ALLOWED] * 2
        await expect_a_healthy_gate(gate)


@pytest.mark.parametrize(
    "failure", [OSError("broken"), TimeoutError(), ZeroDivisionError(), asyncio.CancelledError()]
)
@pytest.mark.parametrize("fail_at", range(6))
async def test_a_transport_that_fails_at_any_step_denies_and_is_asked_again(
    fail_at: int, failure: BaseException
) -> None:
    transport = SteppingTransport(fail_at, failure)

    async with scripted_gate(transport) as gate:
        tasks = [asyncio.create_task(visit(gate, url)) for url in (ALLOWED, DENIED)]
        results = await asyncio.gather(*tasks, return_exceptions=True)

        assert all(isinstance(result, polite.PoliteError | asyncio.CancelledError) for result in results)
        await expect_a_healthy_gate(gate)


@pytest.mark.parametrize("steps", range(0, 40, 2))
async def test_closing_at_any_step_leaves_no_request_waiting(steps: int) -> None:
    async with scripted_gate(SteppingTransport()) as gate:
        tasks = [asyncio.create_task(visit(gate, url)) for url in (ALLOWED, DENIED) * 3]
        for _ in range(steps):
            await asyncio.sleep(0)
        await gate.close()
        async with asyncio.timeout(10):
            results = await asyncio.gather(*tasks, return_exceptions=True)

    assert DENIED not in results
    assert all(r == ALLOWED or isinstance(r, polite.PoliteError) for r in results)


class FailingStore:
    """A store whose every call fails."""

    async def load(self, origin: polite.Origin) -> None:
        raise OSError("disk on fire")

    async def save(self, origin: polite.Origin, snapshot: object) -> None:
        raise OSError("disk on fire")

    async def close(self) -> None:
        pass


async def test_a_store_that_fails_allows_nothing() -> None:
    async with scripted_gate(SteppingTransport(), store=FailingStore()) as gate:
        with pytest.raises(polite.StoreFailed, match="FailingStore.load.*on fire"):
            await gate.check(ALLOWED)


@pytest.mark.pure("replaces a method of Turns")
async def test_turns_that_cannot_be_closed_leave_no_fetch_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing() -> None:
        raise OSError("not now")

    transport = ScriptedTransport()
    transport.hold()
    async with scripted_gate(transport) as gate:
        asking = asyncio.create_task(gate.check(ALLOWED))
        await asyncio.sleep(1)
        with monkeypatch.context() as patch:
            patch.setattr(gate.services.turns, "close", failing)
            with pytest.raises(OSError, match="not now"):
                await gate.close()

        with pytest.raises(polite.GateClosed):
            await asking
        assert len(asyncio.all_tasks()) == 1


async def test_a_store_that_cancels_itself_is_an_error_and_cancels_no_caller() -> None:
    class CancelledStore(FailingStore):
        async def load(self, origin: polite.Origin) -> None:
            raise asyncio.CancelledError

    async with scripted_gate(SteppingTransport(), store=CancelledStore()) as gate:
        with pytest.raises(RuntimeError, match="cancelled itself"):
            await gate.check(ALLOWED)
