"""gate.tdm_file and gate.robots: what they fetch, in which turns, and what a failure means."""

import asyncio
import gzip
import tracemalloc
from typing import Any

import pytest

import polite
from polite.ports import Ask
from polite.robots.exchange import BodyEnd, Failed, Reply
from polite.robots.reason import Reason
from polite.terms.tdm import TDM_LIMIT
from polite.testing import ScriptedTransport
from tests.support import TimedTransport, scripted_gate

pytestmark = pytest.mark.virtual_time

SITE = "https://example.com"
ROBOTS, FILE = f"{SITE}/robots.txt", f"{SITE}/.well-known/tdmrep.json"
RULES = b'[{"location": "/a/", "tdm-reservation": 1}]'


async def test_the_file_of_the_site_is_fetched_in_its_turn_and_each_call_fetches_it_again():
    transport = TimedTransport({FILE: Reply(200, RULES), ROBOTS: Reply(404)})
    async with scripted_gate(transport, pacing=polite.PacingPolicy(min_delay=5)) as gate:
        file = await gate.tdm_file(f"{SITE}/any/page?x")
        await gate.tdm_file(SITE)
        said = polite.usage((), await gate.robots(SITE), gate.agent, f"{SITE}/a/", tdm_file=file)

    assert [rule.location for rule in file.rules] == ["/a/"]
    assert said.ai_train is False
    assert transport.asked == [ROBOTS, FILE, FILE]
    assert [
        round(later - before, 6) for before, later in zip(transport.times, transport.times[1:], strict=False)
    ] == [5, 5]


@pytest.mark.parametrize(
    ("reply", "problem", "reserved"),
    [
        # A site that gives no file has no rules.
        (Reply(404), "the server returned status 404", False),
        (Reply(200, b"<html>"), "no list of rules", False),
        (Reply(302), "a redirect without a Location", False),
        (Reply(302, location=FILE), "the redirects form a loop", False),
        # A file that may be there and cannot be read reserves everything.
        (Reply(503), "the server returned status 503", True),
        (Reply(429), "the server returned status 429", True),
        (Failed(Reason.CONNECTION_REFUSED, "refused"), "refused", True),
        (Reply(200, RULES, end=BodyEnd.CORRUPT), "the body's coding is corrupt", True),
        (Reply(200, RULES[:20], end=BodyEnd.CUT_SHORT), "broken JSON", True),
        (Reply(200, gzip.compress(RULES)[:-12]), "broken JSON", True),
        (Reply(200, b"\x1f\x8bno gzip"), "broken JSON", True),
        (Reply(200, b"[" + b" " * TDM_LIMIT), f"more than {TDM_LIMIT} octets", True),
        (Reply(200, gzip.compress(b"[" + b" " * 50_000_000)), f"more than {TDM_LIMIT} octets", True),
    ],
)
async def test_what_is_no_file_reserves_nothing_or_everything(reply: Any, problem: str, reserved: bool):
    async with scripted_gate({FILE: reply}) as gate:
        file = await gate.tdm_file(f"{SITE}/any/page?x")

    assert file.problem == problem
    assert [(rule.location, rule.reserved, rule.careful) for rule in file.rules] == [
        ("/", True, True)
    ] * reserved


async def test_a_file_that_robots_txt_disallows_is_not_fetched_and_reserves_nothing():
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nDisallow: /.well-known/\n")})
    async with scripted_gate(transport) as gate:
        file = await gate.tdm_file(SITE)

    assert (file.rules, file.problem) == ((), "disallowed by Disallow: /.well-known/ (line 2)")
    assert transport.asked == [ROBOTS]


async def test_without_a_reliable_robots_txt_nothing_is_fetched_and_everything_is_reserved():
    transport = ScriptedTransport({ROBOTS: Reply(503), FILE: Reply(200, b"[]")})
    async with scripted_gate(transport) as gate:
        file = await gate.tdm_file(SITE)

        assert file.at("/any") is not None
        assert transport.asked == [ROBOTS]
        assert await gate.robots(SITE) is None


async def test_a_transport_that_ignores_the_limit_fills_no_memory():
    class Endless(ScriptedTransport):
        async def stream(self, ask: Ask, begun: Any, take: Any) -> Any:
            begun(Reply(200))
            for _ in range(200):
                await take(b"[" + b" " * 100_000)
            return Reply(200)

    async with scripted_gate(Endless({})) as gate:
        await gate.check(SITE)
        tracemalloc.start()
        file = await gate.tdm_file(SITE)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert file.problem == f"more than {TDM_LIMIT} octets"
    assert peak < 8 * TDM_LIMIT


async def test_ftp_has_no_such_file():
    async with scripted_gate({}) as gate:
        assert (await gate.tdm_file("ftp://example.com/a")).problem == "ftp: has no well-known files"


async def test_the_robots_txt_that_decides_is_returned_and_fetched_once():
    transport = ScriptedTransport({ROBOTS: Reply(200, b"User-agent: *\nContent-Signal: ai-train=no\n")})
    async with scripted_gate(transport) as gate:
        robots = await gate.robots(f"{SITE}/a")
        assert robots is not None
        assert robots.signals("x", "/").ai_train is False
        assert await gate.robots(f"{SITE}/b") is not None
        assert await gate.robots("https://none.example") is None

    assert transport.asked.count(ROBOTS) == 1


@pytest.mark.parametrize("keep_stale", [True, False])
async def test_the_last_good_copy_is_returned_while_a_refresh_fails_if_it_decides(keep_stale: bool):
    replies = [Reply(200, b"User-agent: *\nContent-Signal: ai-train=no\n"), Reply(503)]
    robots_policy = polite.RobotsPolicy(min_ttl=0, default_ttl=1, max_ttl=1, keep_stale=keep_stale)
    async with scripted_gate({ROBOTS: replies}, robots=robots_policy) as gate:
        await gate.robots(SITE)
        await asyncio.sleep(60)
        robots = await gate.robots(SITE)
        assert (await gate.explain(SITE)).snapshot.failures == 1

    assert (robots is not None) is keep_stale
    assert robots is None or robots.signals("x", "/").ai_train is False
