"""Two gates that share a store: neither overwrites what the other was told, and both keep to a back-off that either met."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

import polite
from polite.ports import RobotsStore, SavedBackOff
from polite.robots.exchange import Reply
from polite.robots.result import Unavailable
from polite.robots.snapshot import Snapshot
from polite.stores.memory import MemoryStore
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock, ScriptedTransport
from tests.gate.support import PAGE, PRIVATE, ROBOTS, visit
from tests.support import RULES, scripted_gate

HOUR, DAY = 3_600.0, 86_400.0
CLOSED = Reply(200, b"User-agent: *\nDisallow: /\n")
BUSY = Reply(503, retry_after="86000")

Opening = Callable[[], RobotsStore]


@pytest.fixture(params=["memory", "sqlite"])
def shared(request, tmp_path):
    """Gives each gate its way to one store: an object for both, or a file that each opens for itself."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    return lambda: SqliteStore(tmp_path / "crawl.sqlite", wall=lambda: LoopClock().wall())


def gate(transport, store, **robots):
    return scripted_gate(transport, robots=polite.RobotsPolicy(**robots), store=store)


def answering(*answers: Reply) -> ScriptedTransport:
    return ScriptedTransport({ROBOTS: answers})


async def test_k3_a_slow_failure_does_not_replace_the_rules_that_another_gate_saved_meanwhile(shared):
    slow, quick, down = answering(Reply(500)), answering(CLOSED), answering(Reply(500))
    async with gate(slow, shared()) as ours, gate(quick, shared()) as other:
        slow.hold()
        asking = asyncio.create_task(ours.check(PAGE))
        await asyncio.sleep(5)
        await other.check(PAGE)
        await asyncio.sleep(5)
        slow.let_go()
        decision = await asking

    verdicts = []
    for _ in range(32):
        async with gate(down, shared()) as again:
            verdicts.append((await again.check(PAGE)).allowed)
            await asyncio.sleep(DAY)

    assert decision.reason is polite.Reason.RULE
    assert not any(verdicts)


@pytest.mark.parametrize("asks_first", ["when it is over", "ahead of time"])
async def test_k4_the_back_off_of_one_gate_holds_for_a_gate_that_knew_the_origin(shared, asks_first: str):
    met, knew = answering(RULES, BUSY), answering(RULES)
    async with gate(met, shared()) as one, gate(knew, shared()) as other:
        await one.check(PAGE)
        await other.check(PAGE)
        await asyncio.sleep(1.1 * DAY if asks_first == "when it is over" else 0.95 * DAY)
        await one.check(PAGE)
        await asyncio.sleep(10)
        decisions = []
        for _ in range(20):
            decisions.append((await other.check(PAGE), await other.check(PRIVATE)))
            await asyncio.sleep(HOUR)
        asked = len(knew.asked)
        await asyncio.sleep(10 * HOUR)
        await other.check(PAGE)

    assert (len(met.asked), asked) == (2, 0)
    assert all(page.allowed and not private.allowed for page, private in decisions)
    assert len(knew.asked) == 1


class Own(MemoryStore):
    """A store and a BackOffStore, each method of which returns what `answers` has for it, or raises it."""

    def __init__(self, **answers: object) -> None:
        super().__init__()
        self._answers = answers

    def _answer(self, method, otherwise=None):
        answer = self._answers.get(method, otherwise)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def load(self, origin):
        return self._answer("load")

    async def save(self, origin: polite.Origin, snapshot: Snapshot) -> None:
        self._answer("save")

    def hold(self, origin: polite.Origin, back_off: SavedBackOff) -> None:
        self._answer("hold")

    async def held(self, origin):
        return self._answer("held")

    async def close(self) -> None:
        self._answer("close")


GOOD = Snapshot(Unavailable(polite.Reason.CLIENT_ERROR, ROBOTS, 404), 1e9, 2e9)


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("load", OSError("disk"), r"Own\.load\(https://site\.test\) raised OSError\('disk'\)"),
        ("load", {"access": 1}, r"Own\.load\(.*\) returned \{'access': 1\}: a Snapshot or None is needed"),
        ("load", replace(GOOD, access="x"), r"Own\.load\(.*\) returned .*Snapshot\.access is 'x'"),
        ("load", replace(GOOD, expires_at=float("nan")), r"returned .*Snapshot\.expires_at is nan"),
        ("load", replace(GOOD, good=Unavailable("x", "u")), r"returned .*Unavailable\.reason is 'x'"),
        ("save", OSError("full"), r"Own\.save\(https://site\.test\) raised OSError\('full'\)"),
        ("held", 60.0, r"Own\.held\(.*\) returned 60\.0: a SavedBackOff or None is needed"),
        (
            "held",
            SavedBackOff(0.0, float("inf"), ""),
            r"Own\.held\(.*\) returned .*SavedBackOff\.until is inf",
        ),
        (
            "held",
            SavedBackOff(0.0, 1e300, ""),
            r"Own\.held\(.*\) returned .*1e\+300.*: a back-off ends within",
        ),
        (
            "load",
            asyncio.CancelledError("x"),
            r"Own\.load\(https://site\.test\) raised CancelledError\('x'\)",
        ),
    ],
)
async def test_a_store_that_fails_or_returns_nonsense_is_named_and_gives_no_permit(method, answer, message):
    async with scripted_gate({ROBOTS: RULES}, store=Own(**{method: answer})) as gate:
        with pytest.raises(polite.StoreFailed, match=message):
            async with gate.permit(PAGE):
                pass


async def test_a_store_that_cannot_keep_a_back_off_is_named_in_the_log_and_the_back_off_runs(caplog):
    async with scripted_gate({ROBOTS: RULES}, store=Own(hold=OSError("disk"))) as gate:
        await visit(gate, status=429, Retry_After="600")
        assert (await gate.explain(PAGE)).wait_s == pytest.approx(600, abs=2)
    assert "Own.hold(https://site.test) raised OSError('disk')" in caplog.text
