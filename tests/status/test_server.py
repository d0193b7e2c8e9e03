"""The page over HTTP, on loopback: who may see it, paths, headers, limits, and its end."""

import asyncio
import logging
import re
import time
from contextlib import AsyncExitStack, suppress

import aiohttp
import pytest

import polite
from polite.status.monitor import Monitor
from polite.status.server import HEADERS, Access
from tests.status.support import served
from tests.support import RULES, A, expect_no_other_tasks, scripted_gate

TOKEN = "a-token-of-enough-characters"
BAD_TOKENS = ("short", "x" * 1_025, "umlautäöüäöüäöüäöü", 7)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "192.0.2.1", "localhost.example.com")),
    ],
)
def test_only_loopback_needs_no_token(host, loopback):
    if loopback:
        assert Access(host, None).client(None) == ""
        return
    with pytest.raises(polite.InvalidOption, match="give a token of at least 16 characters"):
        Access(host, None)
    assert Access(host, TOKEN).client(None) is None
    assert Access(host, TOKEN).client("Bearer \udcff") is None


@pytest.mark.parametrize(
    ("header", "known"),
    [
        *((h, True) for h in ("127.0.0.1:8080", "localhost:9999", "[::1]:8080", "STATUS.example.com:443")),
        *((h, False) for h in ("192.0.2.1", "localhost.evil.example", "user@localhost", None)),
    ],
)
def test_a_host_that_another_site_could_have_is_refused(header, known):
    assert Access("127.0.0.1", None, ["Status.example.com"]).known_host(header) is known
    if header == "192.0.2.1":
        assert Access("0.0.0.0", TOKEN).known_host(header)


async def test_the_page_and_its_files_are_whole_and_from_this_host():
    async with served() as crawl:
        assert crawl.page.url == f"http://127.0.0.1:{crawl.page.port}/"
        for path, kind in (("", "text/html"), ("status.css", "text/css"), ("status.js", "text/javascript")):
            async with crawl.session.get(crawl.page.url + path) as response:
                body = await response.text()
                assert (response.status, response.content_type) == (200, kind)
                assert {name: response.headers[name] for name in HEADERS} == HEADERS
                # Nothing in it is from elsewhere, and nothing in the page is a script or a style: the policy forbids both.
                policy = response.headers["Content-Security-Policy"]
                assert policy.startswith("default-src 'none';")
                assert {source for each in policy.split("; ") for source in each.split()[1:]} == {
                    "'none'",
                    "'self'",
                }
                assert not re.search(r"https?://(?!www\.w3\.org)|//cdn", body)
                assert not re.search(r"style=|<style| on\w+=", body) or kind != "text/html"


async def test_the_api_has_what_the_page_shows():
    async with served({f"{A}/robots.txt": RULES}) as crawl:
        await crawl.visit(f"{A}/1", status=404)
        await crawl.frontier.put(f"{A}/private/2")
        await crawl.pass_time(3)
        status, state = await crawl.get("api/status")
        timeline = (await crawl.get("api/timeline"))[1]
        origins = (await crawl.get("api/origins?limit=3&reason=delay&q=a"))[1]
        events = (await crawl.get("api/events"))[1]
        shared = (await crawl.get("api/crawl"))[1]
        explained = (await crawl.get(f"api/explain?url={A}/private/2"))[1]

    assert (status, state["responses"]) == (200, {"404": 1})
    assert (state["frontier"]["done"], state["refused"]) == (1, {"RULE": 1})
    assert state["robots"] == [{"outcome": "found", "reason": "OK", "count": 1}]
    assert (state["agent"], len(timeline["seconds"])) == ("TestBot/1.0", 8)
    assert sum(row[timeline["fields"].index("not_well")] for row in timeline["seconds"]) == 1
    assert sum(row[timeline["fields"].index("granted")] for row in timeline["seconds"]) == 1
    assert (origins["origins"], [each["kind"] for each in events]) == ([], ["Refused"])
    assert shared is None
    assert "disallowed by Disallow: /private" in explained["verdict"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        *(
            (f"api/origins?{query}", 400)
            for query in ("limit=0", "limit=301", "limit=%C2%B2", "reason=backoff")
        ),
        *((f"api/explain{query}", 400) for query in ("", "?url=" + "x" * 8_000, "?url=nothing")),
        *(("api/origins?reason=back_off", 200), ("api/status?after=0", 200), ("api/status?after=-1", 400)),
        *(("api/unknown", 404), ("../serving.py", 404)),
    ],
)
async def test_odd_requests_are_answered(path, status):
    async with served() as crawl:
        assert (await crawl.get(path))[0] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "status.example.com"}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 200),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
    ],
)
async def test_requests_of_other_sites_are_refused(headers, status):
    async with served(names=["status.example.com"]) as crawl:
        assert (await crawl.get("", **headers))[0] == status
        if "Sec_Fetch_Mode" in headers:
            assert (await crawl.get("api/status", **headers))[0] == 403


async def test_a_token_is_needed_for_all_but_the_files_and_is_in_no_log(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    malformed = f"GET / HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nbro ken\x00: {TOKEN}\r\n\r\n"
    async with served(token=TOKEN) as crawl:
        for path in ("", "status.js"):
            assert (await crawl.get(path))[0] == 200
            assert (await crawl.get(path, "POST"))[0] == 405
        for path in ("status", "timeline", "origins", "events", "crawl", "explain?url=x", "unknown"):
            assert (await crawl.get(f"api/{path}"))[0] == 401
        for sent in (f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
            assert (await crawl.get("api/status", Authorization=sent))[0] == 401
        for sent in (f"Bearer {TOKEN}", f"bearer  {TOKEN} "):
            assert (await crawl.get("api/status", Authorization=sent))[0] == 200
        reader, writer = await asyncio.open_connection("127.0.0.1", crawl.page.port)
        writer.write(malformed.encode())
        assert b"400" in await reader.readline()
        writer.close()

    assert TOKEN not in crawl.page.url + repr(crawl.page) + caplog.text + "".join(capfd.readouterr())


async def test_an_operator_orders_by_the_page_with_its_token_and_not_without():
    body = {"action": "hold", "pattern": "*.a.test", "because": "full", "for_s": 60, "by": "ann"}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with served(token=TOKEN) as crawl:

        async def order(expected, **changes):
            async with crawl.session.post(
                f"{crawl.page.url}api/orders", **{"json": body, "headers": headers} | changes
            ) as told:
                assert told.status == expected, await told.text()
                return await told.json(content_type=None) if expected != 401 else {}

        await order(401, headers={})
        await order(415, json=None, data="x")
        await order(413, json={**body, "because": "x" * 20_000})
        assert "pattern" in (await order(400, json={**body, "pattern": "a"}))["error"]
        assert "action" in (await order(400, json={**body, "action": "x"}))["error"]
        assert "JSON object" in (await order(400, json=[1]))["error"]
        (given,) = (await order(200))["orders"]
        assert given["by"] == "status page, 127.0.0.1 (ann)"
        await order(200, json={"action": "forbid", "pattern": "https://b.test"})
        await order(200, json={"action": "drop", "pattern": "https://c.test"})
        state = (await crawl.get("api/status", **headers))[1]
        assert state["may_order"]
        assert [row["pattern"] for row in state["orders"]] == ["*.a.test", "https://b.test"]
        assert "hold by status page" in str(state["events"])
        await order(200, json={"action": "release", "pattern": "https://b.test"})
        assert [each.pattern for each in crawl.gate.orders] == ["*.a.test"]
    async with served() as crawl:
        assert (await crawl.get("api/orders", "POST"))[0] == 405
        assert not (await crawl.get("api/status"))[1]["may_order"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"host": "0.0.0.0"}, "give a token"),
        *(
            ({"token": token}, "16 to 1024 visible ASCII characters; it is not shown here$")
            for token in BAD_TOKENS
        ),
        ({"host": 7}, "host must be an address"),
        ({"port": 65_536}, "port must be an integer from 0 to 65535"),
        ({"max_clients": 0}, "max_clients must be an integer from 1 to 100"),
        ({"names": "a"}, "names must be a list"),
        ({"names": ["a:80"]}, "names must be host names"),
        ({"frontier": 7}, "frontier must be a Frontier"),
        ({"frontier": None}, "the frontier is one of another gate"),
    ],
)
async def test_wrong_options_are_refused_before_anything_begins(options, message):
    async with scripted_gate() as gate, scripted_gate() as other:
        if options == {"frontier": None}:
            options = {"frontier": polite.Frontier(other)}
        with pytest.raises(polite.InvalidOption, match=message):
            async with polite.status.serve(gate, **options):
                pass
        assert gate.services.listener.on_left is None


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing():
    async with served() as crawl:
        with pytest.raises(OSError, match="in use"):
            async with polite.status.serve(crawl.gate, port=crawl.page.port):
                pass
    await expect_no_other_tasks()


async def test_the_timeline_has_the_seconds_that_are_new():
    async with served({f"{A}/robots.txt": RULES}) as crawl:
        await crawl.pass_time(5)
        first = (await crawl.get("api/status?after=0"))[1]
        await crawl.pass_time(2)
        second = (await crawl.get(f"api/status?after={first['second']}"))[1]
        third = (await crawl.get("api/status?after=99"))[1]

    assert (first["second"], len(first["timeline"])) == (5, 5)
    assert (second["second"], len(second["timeline"])) == (7, 2)
    assert (second["uptime_s"], third["timeline"]) == (first["uptime_s"] + 2, [])


async def test_connections_are_limited_and_the_oldest_makes_room():
    problems = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: problems.append(problem))
    async with served(max_clients=2) as crawl:
        opened = [await asyncio.open_connection("127.0.0.1", crawl.page.port) for _ in range(16)]
        closed = 0
        for reader, _ in opened[:8]:
            try:
                async with asyncio.timeout(30):
                    closed += await reader.read(1) == b""
            except ConnectionError:
                closed += 1
        opened[8][1].write(b"GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" in await opened[8][0].readline()
        for _, writer in opened:
            writer.close()

    assert closed == 8
    # Others may open any number of connections: each would write a traceback to the log of the crawl.
    assert not problems


POST = "POST /{} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (POST.format("api/status"), True),
        ("GET /api/status HTTP/1.1\r\nHost: loc", False),
        ("", False),
        ("no HTTP at all\r\n\r\n", True),
    ],
)
async def test_connections_that_ask_for_nothing_do_not_lock_the_operator_out_and_are_closed(
    sent, answered, monkeypatch
):
    monkeypatch.setattr("polite.status.server._IDLE_S", 0.5)
    answers: list[bytes] = []
    async with served(token=TOKEN) as crawl, AsyncExitStack() as opened:
        for number in range(100):
            reader, writer = await asyncio.open_connection("127.0.0.1", crawl.page.port)
            opened.callback(writer.close)
            writer.write(sent.encode())
            if answered:
                # On a busy machine the time of a few is over before.
                with suppress(ConnectionError):
                    answers.append(await reader.readline())
            if number % 2:  # half of them leave
                writer.close()
            else:
                opened_last = reader
        async with asyncio.timeout(5):
            status, _ = await crawl.get("api/status", Authorization=f"Bearer {TOKEN}")
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                await opened_last.read()

    assert status == 200
    assert any(answers) is answered


async def test_close_ends_connections_soon_though_one_was_cancelled_and_the_gate_goes_on():
    async with served({f"{A}/robots.txt": RULES}) as crawl:
        reader, writer = await asyncio.open_connection("127.0.0.1", crawl.page.port)
        writer.write(b"GET /api/status HTTP/1.1\r\nHost: ")
        began = time.monotonic()
        cancelled = asyncio.create_task(crawl.page.close())
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        await crawl.page.close()
        await crawl.page.close()
        assert time.monotonic() - began < 20.0
        assert all(task.get_coro().__qualname__ != "RequestHandler.start" for task in asyncio.all_tasks())
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        with pytest.raises(aiohttp.ClientConnectorError):
            await crawl.get("")
        assert await crawl.gate.check(f"{A}/1")
        assert crawl.gate.services.listener.on_left is None  # a page costs nothing when it is gone


async def test_a_failure_of_the_page_is_logged_once_and_never_reaches_the_crawl(caplog, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    async with served({f"{A}/robots.txt": RULES}) as crawl:
        monkeypatch.setattr(Monitor, "state", broken)
        await crawl.pass_time(5)
        answers = [(await crawl.get("api/status"))[0] for _ in range(3)]
        await crawl.visit(f"{A}/1", status=200)

    assert answers == [500, 500, 500]
    assert [each.message for each in caplog.records] == ["the status page failed at /api/status"]
