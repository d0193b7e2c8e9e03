"""Thirty-one days without robots.txt, hour by hour, in every dialect: what may be fetched, and how often the site is asked."""

import asyncio
from itertools import pairwise

import pytest

import polite
from polite.robots.exchange import Ask, Reply
from polite.stores.memory import MemoryStore
from polite.stores.sqlite import SqliteStore
from polite.testing import LoopClock
from tests.support import now, scripted_gate

pytestmark = pytest.mark.virtual_time

HOUR = 3_600.0
DAY = 24 * HOUR
LIMIT = 30 * DAY
SITE = "https://site.test"
PAGE, PRIVATE = f"{SITE}/page", f"{SITE}/private"
FILE = Reply(200, b"User-agent: *\nDisallow: /private\n")

DIALECTS = [polite.CLASSIC, polite.GOOGLE_2010, polite.GOOGLE_2019, polite.RFC9309, polite.GOOGLE]
# H6: the two documents of 2019 on, and what is built on them, end the waiting; the earlier ones do not speak of it.
FORGIVING = {"google-2019", "rfc9309", "google"}


class Server:
    """Answers as it is told; `failures` are the times at which it was asked in vain."""

    def __init__(self, answer: Reply) -> None:
        self.answer = answer
        self.failures: list[float] = []

    async def get(self, ask: Ask) -> Reply:
        assert ask.target.url == f"{SITE}/robots.txt"
        if self.answer.status >= 500:
            self.failures.append(now())
        return self.answer

    async def close(self) -> None:
        pass


def opened(server, store, **robots):
    return scripted_gate(server, robots=polite.RobotsPolicy(**robots), store=store)


async def walk(gate, until, seen):
    while now() < until:
        explanation = await gate.explain(PAGE)
        seen(explanation, await gate.check(PRIVATE))
        retry = now() + explanation.snapshot.expires_at - explanation.now
        # A little later: a float of a loop that is a month old is coarse.
        await asyncio.sleep(min(retry, (now() // HOUR + 1) * HOUR) - now() + 0.001)


class Watch:
    """What must be so at each hour; `verdict` gives what /page and /private come to, by whether the thirty days are over."""

    def __init__(self, server, dialect, verdict):
        self.server, self.dialect, self.verdict = server, dialect, verdict
        self.hours: set[int] = set()
        self.over = 0

    def __call__(self, explanation: polite.Explanation, private: polite.Decision) -> None:
        failures = self.server.failures
        self.hours.add(int(now() // HOUR))
        # What is known is from the last time the site was asked, an hour and a quarter ago at most.
        unreachable_s = failures[-1] - failures[0]
        assert now() - failures[-1] <= 1.25 * HOUR + 1.1
        over = unreachable_s > LIMIT
        self.over += over
        forgiven = over and self.dialect.name in FORGIVING
        assert (explanation.decision.allowed, private.allowed) == self.verdict(forgiven)
        self._explained(explanation, forgiven)

    def _explained(self, explanation: polite.Explanation, forgiven: bool) -> None:
        snapshot, text = explanation.snapshot, str(explanation)
        assert snapshot.unreachable_since is not None
        epoch = LoopClock().wall() - now()
        assert snapshot.unreachable_since == pytest.approx(epoch + self.server.failures[0], abs=0.01)
        assert snapshot.failures == len(self.server.failures)
        if snapshot.good is None:
            assert ("unreachable for longer than the policy's limit" in text) is forgiven
        else:
            assert ("the last good copy decides" in text) is explanation.decision.allowed


def require_growing_delays(failures: list[float], most: float = HOUR) -> None:
    """5 s, 10 s, 20 s... and up to a quarter more, and a second for the turn; then about one an hour for a month."""
    gaps = [later - earlier for earlier, later in pairwise(failures)]
    for number, gap in enumerate(gaps):
        least = min(5.0 * 2.0**number, most)
        assert least <= gap <= 1.25 * least + 1.1
    jittered = [gap for gap in gaps if gap >= most]
    assert len({round(gap) for gap in jittered}) > len(jittered) / 4


STORES = {
    "memory": lambda _: MemoryStore(),
    "sqlite": lambda path: SqliteStore(path / "crawl.sqlite", wall=lambda: LoopClock().wall()),
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return STORES[request.param](tmp_path)


@pytest.mark.slow("a month of requests", fast=2)
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
async def test_h6_a_site_without_a_copy_is_closed_for_thirty_days_then_open_if_the_dialect_says_so(dialect):
    server = Server(Reply(500))
    watch = Watch(server, dialect, lambda forgiven: (forgiven, forgiven))

    async with opened(server, None, dialect=dialect) as gate:
        await walk(gate, 31 * DAY, watch)

    assert len(watch.hours) == 31 * 24
    assert watch.over >= 20
    assert 31 * 24 / 1.25 <= len(server.failures) <= 31 * 24 + 10
    require_growing_delays(server.failures)


@pytest.mark.slow("a month of requests", fast=2)
@pytest.mark.parametrize("dialect", [polite.CLASSIC, polite.RFC9309], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("copy", [False, True])
async def test_h6_thirty_days_are_thirty_days_across_restarts(dialect, copy, store):
    server = Server(FILE if copy else Reply(500))
    watch = Watch(server, dialect, lambda forgiven: (forgiven, forgiven and not copy))
    policy = {"dialect": dialect, "keep_stale": False, "refresh_ahead": 0}

    async with opened(server, store, **policy) as gate:
        await gate.check(PAGE)
        server.answer = Reply(500)
        await asyncio.sleep(DAY + 1)
    for day in (9, 10, 17, 29.5, 32):
        async with opened(server, store, **policy) as gate:
            await walk(gate, day * DAY, watch)

    assert len(watch.hours) >= 31 * 24 - 4
    assert watch.over >= 20
    if copy:
        require_growing_delays(server.failures)


async def test_h5_a_503_is_asked_about_every_few_minutes_for_as_long_as_it_lasts() -> None:
    server = Server(Reply(503))

    async with opened(server, None) as gate:
        for _ in range(2 * 24 * 360):
            asked = now()
            assert not await gate.check(PAGE)
            assert now() - asked <= 1.25 * 300
            await asyncio.sleep(10)

    gaps = [later - earlier for earlier, later in pairwise(server.failures)]
    assert all(gap <= 1.25 * 300 + 11 for gap in gaps)
    assert min(gaps[8:]) >= 300
    assert gaps[0] < 30
