"""Permits over HTTP: their turns, ends and limits, and clients that go away."""

import asyncio
import socket
import time

import pytest

import polite
from polite.robots.exchange import Failed, Reply
from polite.robots.reason import Reason
from polite.serve import serve
from polite.testing import ManualClock
from tests.serve.support import TOKENS, Served, client, served
from tests.support import A, B, scripted_gate


async def test_a_permit_has_the_url_and_the_headers_to_send_and_ends_with_its_report():
    async with served() as crawl:
        permit = await crawl.permit(
            "/a b?q=1#part", headers={"Accept": "text/html", "user-agent": "TestBot/1.0"}
        )
        assert (permit.status, permit.value["url"]) == (200, f"{A}/a%20b?q=1")
        assert permit.value["deadline"] == crawl.clock.wall() + 3_600
        assert permit.value["headers"] == {"User-Agent": "TestBot/1.0", "Accept": "text/html"}
        assert crawl.gate.inside == 1
        ended = await crawl.report(permit, status=429, headers={"Retry-After": "60"})
        assert (ended.value, crawl.gate.inside) == ({"ended": True, "valid": True}, 0)
        assert 55 < (await crawl.ask("GET", f"v1/explain?url={A}/a")).value["wait_s"] <= 60


async def test_a_turn_that_does_not_come_in_time_is_asked_for_again():
    async with served() as crawl:
        await crawl.report(await crawl.permit())
        waiting = await crawl.permit(wait=0.02)
        assert (waiting.status, waiting.headers["Location"]) == (202, waiting.value["poll"])
        place = waiting.value["poll"][1:]
        assert (await crawl.ask("GET", f"{place}?wait=0")).status == 202
        polling = await crawl.soon(crawl.ask("GET", place))
        await crawl.pass_time(1.01)
        permit = await polling
        assert (permit.status, permit.value["url"]) == (200, f"{A}/a")
        # A client whose connection broke may ask again.
        assert (await crawl.ask("GET", place)).value == permit.value
        assert (await crawl.report(permit)).status == 200


async def test_refusals_say_why():
    script = {f"{A}/robots.txt": Reply(503), f"{B}/robots.txt": Reply(200, b"User-agent: *\nDisallow: /x\n")}
    async with served(script, gate={"pacing": polite.PacingPolicy(max_pages=1)}) as crawl:
        away = await crawl.permit("/a")
        assert away.status == 503
        assert 0 < int(away.headers["Retry-After"]) <= 300
        denied = await crawl.ask("POST", "v1/permits", {"url": f"{B}/x/1"})
        assert denied.status == 403
        decision = denied.value["decision"]
        assert (decision["rule"], decision["line"], decision["reason"]) == ("Disallow: /x", 2, "RULE")
        await crawl.pass_time(2)
        await crawl.report(await crawl.ask("POST", "v1/permits", {"url": f"{B}/1"}))
        spent = await crawl.ask("POST", "v1/permits", {"url": f"{B}/2"})
        assert (spent.status, spent.value["option"]) == (403, "max_pages")


async def test_an_address_that_is_blocked_is_no_passing_refusal():
    async with served({f"{A}/robots.txt": Failed(Reason.ADDRESS_REFUSED, "private")}) as crawl:
        assert (await crawl.permit()).status == 403


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "url is missing"),
        ({"url": 7}, "url must be a string of 1 to 8192 characters"),
        ({"url": "http://"}, "url: 'http://' is no URL to fetch"),
        ({"url": A, "wait": 61}, "wait must be a number from 0 to 60"),
        ({"url": A, "wait": True}, "wait must be a number from 0 to 60"),
        ({"url": A, "wait": float("nan")}, "wait must be"),
        ({"url": A, "waits": 1}, "'waits' is not known here; known: url, wait, headers, conditional"),
        ({"url": A, "headers": {"X\n": "1"}}, "headers must be an object of 0 to 100 header fields"),
        ({"url": A, "headers": {"X": "1\r\nY: 2"}}, "headers must be"),
        ({"url": A, "headers": {"X": "1" * 40_000}}, "at most 32768 in all"),
        ({"url": A, "headers": {"user-agent": "Other/1"}}, "User-Agent must be 'TestBot/1.0'"),
        ({"url": A, "conditional": True}, "--recrawl FILE"),
        ([], "a JSON object"),
    ],
)
async def test_bad_input_names_the_field_and_its_limit(body, says):
    async with served() as crawl:
        answer = await crawl.ask("POST", "v1/permits", body)
        assert (answer.status, says in answer.error) == (400, True), answer.error
        assert crawl.gate.waiting == crawl.gate.inside == 0


async def test_a_report_at_the_head_starts_the_delay_and_an_end_follows():
    async with served() as crawl:
        permit = await crawl.permit()
        assert (await crawl.report(permit, headers={})).status == 400
        assert (await crawl.report(permit, status=200, end=False)).value["ended"] is False
        await crawl.pass_time(1.01)
        assert (await crawl.report(permit, status=200)).status == 409
        assert (await crawl.ask("DELETE", f"v1/permits/{permit.value['id']}")).status == 409
        assert (await crawl.report(permit, refused="a captcha", octets=10)).value["ended"] is True
        # The refusal was of the pace: the origin backs off.
        assert (await crawl.permit(wait=0)).status == 202


async def test_a_second_report_and_ids_that_are_no_permit_are_refused():
    async with served() as crawl:
        permit = await crawl.permit()
        await crawl.report(permit)
        assert (await crawl.report(permit)).status == 410
        for guessed in ("", "x", permit.value["id"][:-1], "../permits", "%00", "x" * 5_000):
            assert (await crawl.ask("GET", f"v1/permits/{guessed}")).status in (404, 405)
        assert len(permit.value["id"]) >= 24


async def test_a_permit_that_is_given_back_costs_no_delay():
    async with served() as crawl:
        permit = await crawl.permit()
        assert (await crawl.ask("DELETE", f"v1/permits/{permit.value['id']}")).status == 204
        assert (await crawl.permit(wait=0)).status == 200
        waiting = await crawl.permit(wait=0)
        polling = await crawl.soon(crawl.ask("GET", waiting.value["poll"][1:]))
        assert (await crawl.ask("DELETE", waiting.value["poll"][1:])).status == 204
        assert (await polling).status == 410
        assert (await crawl.report(waiting)).status == 410


async def test_what_waits_cannot_be_reported():
    async with served() as crawl:
        await crawl.permit()
        assert (await crawl.report(await crawl.permit(wait=0))).status == 409


async def test_another_token_neither_sees_nor_ends_a_permit():
    async with served(tokens=TOKENS) as crawl:
        one, two = ({"Authorization": f"Bearer {token}"} for token in TOKENS.values())
        nobody = await crawl.permit()
        assert (nobody.status, nobody.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert (
            await crawl.permit(headers_sent={"Authorization": "Bearer the-third-token-of-two"})
        ).status == 401
        assert (await crawl.ask("GET", "v1/explain")).status == 401
        assert (await crawl.ask("GET", "healthz")).status == 200
        await crawl.ask("GET", f"v1/check?url={A}/", **one)
        await crawl.pass_time(2)
        place = f"v1/permits/{(await crawl.permit(headers_sent=one)).value['id']}"
        for method, body in (("GET", None), ("POST", {"status": 200}), ("DELETE", None)):
            assert (await crawl.ask(method, place, body, **two)).status == 404
        assert crawl.gate.inside == 1
        assert (await crawl.ask("POST", place, {"status": 200}, **one)).status == 200
        assert (await crawl.ask("POST", place, {"status": 200}, **two)).status == 404


async def test_a_client_that_goes_away_while_it_waits_loses_no_turn():
    async with served() as crawl:
        await crawl.report(await crawl.permit())
        gone = await crawl.soon(crawl.permit("/gone"))
        next_one = await crawl.soon(crawl.permit("/next"))
        assert crawl.gate.waiting == 2
        gone.cancel()
        await asyncio.sleep(0.05)
        assert crawl.gate.waiting == 1
        await crawl.pass_time(1.01)
        assert (await next_one).value["url"] == f"{A}/next"
        assert crawl.gate.inside == 1


async def test_a_permit_that_nobody_asks_for_is_dropped_and_its_turn_goes_on():
    async with served() as crawl:
        await crawl.report(await crawl.permit())
        waiting = await crawl.permit("/never-asked-for", wait=0)
        other = await crawl.soon(crawl.permit("/other", wait=60))
        # The turn comes, and the client does not take it.
        await crawl.pass_time(1.01)
        assert (crawl.gate.inside, other.done()) == (1, False)
        for _ in range(12):
            await crawl.pass_time(1.0)
        assert (await other).status == 200
        assert (await crawl.ask("GET", waiting.value["poll"][1:])).status == 410


async def test_a_permit_that_is_not_reported_by_its_deadline_is_reclaimed_and_a_late_report_counts():
    async with served(gate={"pacing": polite.PacingPolicy(max_hold=20.0)}) as crawl:
        permit = await crawl.permit()
        other = await crawl.soon(crawl.permit("/other", wait=60))
        for _ in range(22):
            await crawl.pass_time(1.0)
        assert (await other).status == 200
        late = await crawl.report(permit, status=503, headers={"Retry-After": "100"})
        assert late.value == {"ended": True, "valid": False}
        await crawl.report(await other)
        for _ in range(90):
            await crawl.pass_time(1.0)
        assert len(crawl.gate.services.held_turns) == 0


async def test_one_client_cannot_take_all_permits_and_a_flood_is_refused():
    async with served(tokens=TOKENS, max_permits=6) as crawl:
        one, two = ({"Authorization": f"Bearer {token}"} for token in TOKENS.values())
        flood = [await crawl.permit(f"/{n}", wait=0, headers_sent=one) for n in range(5)]
        assert [each.status for each in flood][-2:] == [429, 429]
        assert flood[-1].headers["Retry-After"] == "1"
        assert "the limit is 3 (polite serve: --max-permits)" in flood[-1].error
        assert (await crawl.permit("/b", wait=0, headers_sent=two)).status == 202
        await crawl.ask("DELETE", flood[2].value["poll"][1:], **one)
        assert (await crawl.permit("/again", wait=0, headers_sent=one)).status == 202
        polls = [await crawl.soon(crawl.ask("GET", flood[1].value["poll"][1:], **one)) for _ in range(5)]
        assert sum(each.done() and each.result().status == 429 for each in polls) == 1
        for each in polls:
            each.cancel()


async def test_a_server_that_stops_waits_for_permits_that_are_out_and_refuses_others():
    async with scripted_gate(clock=ManualClock()) as gate, client() as session:
        async with serve(gate, grace=5.0) as server:
            crawl = Served(gate, server, session, gate.services.clock)
            learning = await crawl.soon(crawl.permit(wait=60))
            await crawl.pass_time(2)
            permit = await learning
            waiting = await crawl.soon(crawl.permit("/b", wait=60))

            async def last() -> None:
                await asyncio.sleep(0.1)
                assert (await waiting).status == 503
                assert (await crawl.permit("/c")).status == 503
                assert (await crawl.ask("GET", "healthz")).status == 503
                assert (await crawl.report(permit)).value == {"ended": True, "valid": True}

            reporting = asyncio.ensure_future(last())
            started = time.monotonic()
        assert time.monotonic() - started < 4.0
        await reporting
        assert gate.inside == gate.waiting == 0


async def test_a_permit_has_signatures_and_conditions_if_the_client_has_the_page():
    class Signer:
        def sign(self, method, target, now):
            return {"Signature": f"{method} {target.url}"}

    async with served(gate={"recrawl": polite.RecrawlPolicy(), "signer": Signer()}) as crawl:
        await crawl.report(await crawl.permit(), status=200, headers={"ETag": '"1"'})
        await crawl.pass_time(1.01)
        headers = (await crawl.permit(conditional=True)).value["headers"]
        assert headers == {"User-Agent": "TestBot/1.0", "If-None-Match": '"1"', "Signature": f"GET {A}/a"}


async def test_many_connections_that_send_nothing_do_not_shut_out_a_client():
    async with served(max_connections=8) as crawl:
        await crawl.permit()
        waiting = await crawl.soon(crawl.permit("/b", wait=60))
        idle = [socket.create_connection(("127.0.0.1", crawl.server.port)) for _ in range(30)]
        await asyncio.sleep(0.1)
        assert (await crawl.ask("GET", "healthz")).status == 200
        assert not waiting.done()
        for each in idle:
            each.close()
        waiting.cancel()
