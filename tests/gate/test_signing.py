"""A gate with a signer: each request is signed when it is sent, for the server that it is sent to."""

import asyncio
import logging

import pytest

import polite
from polite.events import RobotsFetched
from polite.robots.exchange import Reply
from polite.testing import ScriptedTransport
from tests.gate.support import PAGE, ROBOTS, RULES, opened, visit


class Noting:
    def __init__(self) -> None:
        self.signed: list[tuple[str, str, float]] = []

    def sign(self, method, target, now):
        self.signed.append((method, target.url, now))
        return {"Signature": f"{method} {target.origin.text}"}


class Sending(ScriptedTransport):
    """Connects for a while, and notes the fields of each request, and when it is sent."""

    def __init__(self, script, connecting_s=0.0):
        super().__init__(script)
        self.connecting_s = connecting_s
        self.sent: list[tuple[str, dict[str, str]]] = []

    async def get(self, ask):
        await asyncio.sleep(self.connecting_s)
        self.sent.append((ask.target.url, dict(ask.signed())))
        return await super().get(ask)


async def test_each_hop_of_robots_txt_is_signed_for_its_own_server_when_its_connection_is_there() -> None:
    signer = Noting()
    transport = Sending(
        {
            ROBOTS: Reply(301, location="https://www.site.test/r"),
            "https://www.site.test/r": Reply(200, RULES),
        },
        connecting_s=9.0,
    )

    async with opened(transport, signer=signer) as (gate, _):
        began = gate.services.clock.wall()
        await gate.check(PAGE)

    assert transport.sent == [
        (ROBOTS, {"Signature": "GET https://site.test"}),
        ("https://www.site.test/r", {"Signature": "GET https://www.site.test"}),
    ]
    assert [round(at - began) for _, _, at in signer.signed] == [9, 18]


async def test_a_permit_signs_its_url_and_a_redirect_of_it() -> None:
    signer = Noting()

    async with opened(signer=signer) as (gate, _), gate.permit(PAGE) as permit:
        assert gate.signs
        assert permit.sign("GET") == {"Signature": "GET https://site.test"}
        assert permit.sign("HEAD", "https://WWW.site.test:443/x#y") == {
            "Signature": "HEAD https://www.site.test"
        }

    assert [(method, url) for method, url, _ in signer.signed[-2:]] == [
        ("GET", PAGE),
        ("HEAD", "https://www.site.test/x"),
    ]


async def test_without_a_signer_or_a_method_nothing_is_signed() -> None:
    async with opened() as (gate, _), gate.permit(PAGE) as permit:
        assert not gate.signs
        with pytest.raises(polite.InvalidOption, match=r"open_gate\(signer=...\): https://site.test/page"):
            permit.sign("GET")
    async with opened(signer=Noting()) as (gate, _), gate.permit(PAGE) as permit:
        for method in ("", "GET /", "GÄT", "A" * 65, "GET\r\nX: y"):
            with pytest.raises(polite.InvalidOption, match="sign: method must be one such as GET"):
                permit.sign(method)


class Away:
    """A signer whose vault is out of reach: what it raises looks like an error of the server."""

    def sign(self, method, target, now):
        raise ConnectionResetError("the vault")


STRICT = polite.PacingPolicy(min_delay=3.0, circuit_failures=1, max_failures=1)


async def test_a_signer_that_fails_for_robots_txt_is_no_failure_of_the_site(caplog: pytest.LogCaptureFixture):
    events, transport = [], Sending({ROBOTS: Reply(200, RULES)})
    async with opened(transport, signer=Away(), pacing=STRICT, listener=events.append) as (gate, _):
        with pytest.raises(polite.RobotsUnreachable):
            await visit(gate)
        explained = await gate.explain(PAGE)

        assert gate.counters.opened == gate.counters.slowed == gate.counters.declined == 0
        assert explained.wait_s == 3.0
        assert "budget: 0 of 1 failures in a row" in str(explained)

    (fetched,) = [each for each in events if isinstance(each, RobotsFetched)]
    assert fetched.reason == "SIGNER_FAILED"
    (line,) = caplog.records
    assert line.levelno == logging.ERROR
    assert line.getMessage() == f"{ROBOTS} was not requested: the signer failed"
    assert "ConnectionResetError: the vault" in caplog.text
    assert vars(line)["polite_event"] == "signer_failed"


class AwayForPages(Away):
    def sign(self, method, target, now):
        return {} if target.path == "/robots.txt" else super().sign(method, target, now)


async def test_a_permit_that_ends_by_its_failed_signer_is_no_failure_of_the_site() -> None:
    async with opened(Sending({}), signer=AwayForPages(), pacing=STRICT) as (gate, _):
        with pytest.raises(RuntimeError, match="the signer failed"):
            async with gate.permit(PAGE) as permit:
                permit.sign("GET")
        assert gate.counters.opened == 0


async def test_a_sitemap_that_cannot_be_signed_is_no_failure_of_the_site() -> None:
    transport = Sending({ROBOTS: Reply(200, b"Sitemap: https://site.test/map.xml")})
    async with opened(transport, signer=AwayForPages(), pacing=STRICT) as (gate, _):
        assert [entry async for entry in gate.sitemaps(PAGE)] == []
        assert gate.counters.opened == 0
        await visit(gate)
