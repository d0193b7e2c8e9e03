"""Long URLs and hostile rules are decided in a thread; rules that are replaced, forgotten or too old by then are asked again."""

import asyncio
import threading
from itertools import product

import pytest

import polite
from polite.gate.services import Decider
from polite.robots.exchange import Ask, Reply
from polite.robots.parse import parse
from polite.robots.rule_index import RuleIndex
from polite.testing import ScriptedTransport
from tests.gate.support import SITE
from tests.support import scripted_gate

LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Rules that nothing tells apart, and a path that holds what they look for, but for the last.
HOSTILE = "".join(f"Disallow: /*{'*'.join(each)}*0\n" for each in product(LETTERS, LETTERS, "abcdef"))
LONG = 200 * LETTERS[::-1]
LONG_URL = f"{SITE}/{LONG}"
RULES = parse(f"User-agent: *\nDisallow: /secret\n{HOSTILE}").rules_for("TestBot/1.0")


class Site(ScriptedTransport):
    """Serves `rules`, good for `max_age` seconds, and counts how often it is asked for them."""

    def __init__(self, rules: str, max_age: int = 86_400) -> None:
        super().__init__({})
        self.rules, self.max_age, self.count = rules, max_age, 0

    async def get(self, ask: Ask) -> Reply:
        if not ask.target.url.startswith(SITE):
            return Reply(404)
        self.count += 1
        return Reply(200, f"User-agent: *\n{self.rules}".encode(), cache_control=f"max-age={self.max_age}")


def opened_on(site, **robots):
    return scripted_gate(site, robots=polite.RobotsPolicy(**robots))


async def fetched(gate: polite.Gate) -> bool:
    try:
        async with gate.permit(LONG_URL) as permit:
            permit.report(status=200)
    except polite.Disallowed:
        return False
    return True


async def checked(gate: polite.Gate) -> bool:
    return (await gate.check(LONG_URL)).allowed


QUESTIONS = pytest.mark.parametrize("question", [fetched, checked])


@pytest.mark.pure("replaces a method of RuleIndex")
@pytest.mark.parametrize("path", [f"/{LONG}", f"/secret/{LONG}"])
async def test_a_gate_decides_on_a_long_url_in_a_thread(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = RULES.decide(path)
    here, strongest = threading.get_ident(), RuleIndex.strongest
    # Steps that each question took at most which was answered on the loop's own thread.
    steps: list[int] = []

    def watched(self: RuleIndex, path: str, **options: bool) -> int:
        if threading.get_ident() == here:
            indexes = self._indexes.values()
            walked = sum(getattr(getattr(i, "_automaton", None), "_starts", 0).bit_length() for i in indexes)
            steps.append(len(path) * walked // 3)
        return strongest(self, path, **options)

    monkeypatch.setattr(RuleIndex, "strongest", watched)
    async with opened_on(Site(f"Disallow: /secret\n{HOSTILE}")) as gate:
        decision = await gate.check(SITE + path)
        explained = await gate.explain(SITE + path)
        if expected:
            (await gate.acquire(SITE + path)).leave()
        else:
            with pytest.raises(polite.Disallowed) as refused:
                await gate.acquire(SITE + path)
            assert refused.value.decision == expected

    assert decision == explained.decision == expected
    assert max(steps, default=0) < 30_000_000


async def test_what_is_decided_at_once_has_a_budget_for_each_pass_of_the_loop() -> None:
    rules, decider = RULES.prepare(), Decider()
    path = "/" + "z" * (rules.quick_length - 1)
    assert [decider.allows_now(rules, path) for _ in range(100)] == [True] * 48 + [None] * 52
    assert decider.busy
    await asyncio.sleep(0)
    assert decider.allows_now(rules, path)
    assert not decider.busy


async def test_only_one_thread_computes_at_a_time_and_a_cancelled_question_frees_it() -> None:
    rules, decider = RULES.prepare(), Decider()
    asking = [asyncio.ensure_future(decider.decide(rules, f"/{LONG}{n}")) for n in range(20)]
    await asyncio.sleep(0)
    for each in asking[::2]:
        each.cancel()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True, False] * 10


@pytest.fixture
def slow(monkeypatch):
    """From now each job of a thread takes so many seconds."""

    def switch(seconds: float) -> None:
        def run(_, job):
            async def later() -> object:
                await asyncio.sleep(seconds)
                return job()

            return asyncio.ensure_future(later())

        monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", run)

    return switch


@pytest.mark.parametrize("evicted", [False, True])
@QUESTIONS
async def test_rules_replaced_while_a_thread_decides_are_asked_again(question, evicted: bool, slow):
    site = Site(HOSTILE, max_age=1000)
    async with opened_on(site, max_origins=1) as gate, asyncio.timeout(100_000):
        await gate.check(SITE)
        await asyncio.sleep(910)
        site.rules = "Disallow: /\n"
        slow(120)

        asking = asyncio.ensure_future(question(gate))
        await asyncio.sleep(1)
        await gate.check(SITE)  # asks for them ahead of time
        await asyncio.sleep(5)
        assert not await gate.check(SITE)
        if evicted:
            await gate.check("https://other.test")

        assert not await asking


@QUESTIONS
async def test_rules_that_always_expire_before_a_thread_has_decided_are_asked_for_few_times(question, slow):
    site = Site(HOSTILE, max_age=0)
    async with opened_on(site, min_ttl=0.0) as gate, asyncio.timeout(100_000):
        slow(600)
        assert await question(gate)
        assert site.count <= 3
