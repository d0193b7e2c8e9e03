"""Who may ask, what a request may be, and the other operations: decisions, streams, the status page, the document."""

import asyncio
import json
import socket
import stat
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

import polite
from polite.cli.main import main
from polite.robots.exchange import Reply
from polite.serve import endpoints, openapi, serve, server
from tests.serve.support import TOKENS, served
from tests.support import A, scripted_gate

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "openapi.json"


async def raw(port, *pieces):
    """Send octets as they are; return all that comes until the connection ends, or None if it does not within two seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(2.0):
            with suppress(ConnectionError):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
            return await reader.read(-1)
    except TimeoutError:
        return None
    except ConnectionError:
        return b""
    finally:
        writer.close()


# Who may ask.


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        *(({"Host": host}, 421) for host in ("evil.example", "127.0.0.1.evil.example:80")),
        *(({"Origin": origin}, 403) for origin in ("https://evil.example", "null")),
        *(({"Sec-Fetch-Site": site}, 403) for site in ("cross-site", "same-site")),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Host": "gate.example.com"}, 200),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
    ],
)
async def test_a_page_of_another_site_gets_nothing(headers, status):
    async with served(names=["gate.example.com"]) as crawl:
        sent = {"Content-Type": "application/json", **headers}
        body = json.dumps({"url": f"{A}/a"}).encode()
        async with crawl.session.post(f"{crawl.server.url}v1/permits", data=body, headers=sent) as response:
            assert response.status == status
            assert "Access-Control-Allow-Origin" not in response.headers
        assert crawl.gate.inside == (status == 200)
        assert (await crawl.ask("OPTIONS", "v1/permits")).status == 405


async def test_another_address_needs_a_token_and_authorization_is_never_passed_on():
    async with scripted_gate() as gate:
        for options in (
            {"host": "0.0.0.0"},
            {"tokens": {"a": "short"}},
            {"tokens": TOKENS, "forward": ["authorization"]},
            {"forward": ["Host"]},
        ):
            with pytest.raises(polite.InvalidOption, match="^serve: "):
                async with serve(gate, **options):
                    pass


# What a request may be.


async def test_bodies_have_limits(monkeypatch):
    monkeypatch.setattr(server, "_BODY_S", 0.1)
    head = b"POST /v1/permits HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    async with served() as crawl:
        port = crawl.server.port
        huge = await raw(port, head + b"Content-Length: 9999999999\r\n\r\n", b"x" * 100_000)
        assert b" 413 " in huge.split(b"\r\n")[0]
        chunked = await raw(port, head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{   }\r\n")
        assert b" 411 " in chunked.split(b"\r\n")[0]
        assert await raw(port, head + b"Content-Length: 50\r\n\r\n", b'{"url": ') == b""
        deep = b"[" * 60_000
        nested = await raw(port, head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(deep), deep)
        assert b" 400 " in nested.split(b"\r\n")[0]
        assert b" 400 " in (await raw(port, b"GARBAGE\r\n\r\n")).split(b"\r\n")[0]
        large = await raw(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000)
        assert b" 400 " in large.split(b"\r\n")[0]
        assert crawl.gate.waiting == crawl.gate.inside == 0


async def test_what_is_not_there_is_told():
    async with served() as crawl:
        nothing = await crawl.ask("GET", "v1/nothing")
        assert (nothing.status, nothing.error) == (404, "there is no such path: /openapi.json has all")
        assert (await crawl.ask("PUT", "v1/permits")).status == 405
        assert (await crawl.ask("GET", "v1/check")).error == "url is missing: The URL."
        assert (await crawl.ask("GET", f"v1/check?url={A}&x=1")).error == "'x' is not known here; known: url"
        assert (await crawl.ask("GET", "v1/sitemaps?site=x&limit=0")).status == 400
        assert (await crawl.ask("GET", "v1/sitemaps?site=x&limit=many")).status == 400


async def test_a_defect_is_logged_without_the_query(monkeypatch, caplog):
    async def fail(*_):
        raise ValueError("a defect")

    async with served() as crawl:
        monkeypatch.setattr(crawl.gate, "check", fail)
        answer = await crawl.ask("GET", f"v1/check?url={A}/secret")
    assert (answer.status, answer.error) == (500, "the server failed; its log says why")
    assert "a request failed at /v1/check" in caplog.text
    assert "/secret" not in caplog.text.partition("Traceback")[0]


# A socket file.


async def test_a_socket_is_this_users_alone_and_a_stale_one_is_replaced(tmp_path):
    path = str(tmp_path / "gate.sock")
    async with scripted_gate() as gate:
        async with serve(gate, unix=path, grace=0.0) as running:
            assert running.url == f"unix:{path}"
            assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b'"ok":true' in await reader.read()
            writer.close()
            order = ["hold", A, "--because", "disk full", "--gate", running.url]
            assert await asyncio.to_thread(main, order) == 0
            assert gate.orders[0].by.startswith("socket (")
            with pytest.raises(polite.InvalidOption, match="another server listens"):
                async with serve(gate, unix=path):
                    pass
        assert not Path(path).exists()
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(path)
        dead.close()
        async with serve(gate, unix=path, grace=0.0):
            pass
        Path(path).write_text("no socket")
        with pytest.raises(polite.InvalidOption, match="no socket"):
            async with serve(gate, unix=path):
                pass


# Decisions.


async def test_what_is_known_of_a_site():
    rules = b"User-agent: *\nDisallow: /private\nContent-Usage: train-ai=n\nSitemap: https://a.test/s.txt\n"
    async with served({f"{A}/robots.txt": Reply(200, rules)}) as crawl:
        check = (await crawl.ask("GET", f"v1/check?url={A}/private")).value
        assert (check["allowed"], check["line"]) == (False, 2)
        explained = (await crawl.ask("GET", f"v1/explain?url={A}/private")).value
        assert explained["delay_s"] == 1.0
        assert "disallowed by Disallow: /private" in explained["explanation"]
        robots = (await crawl.ask("GET", f"v1/robots?url={A}/x")).value
        assert (robots["outcome"], robots["status"], robots["text"]) == ("found", 200, rules.decode())
        assert (await crawl.ask("GET", f"v1/usage?url={A}/x")).value["refused"] == ["ai-train"]
        assert (await crawl.ask("GET", "v1/usage?url=nothing")).status == 400


async def test_sitemaps_are_streamed_in_their_turns():
    script = {
        f"{A}/robots.txt": Reply(200, b"Sitemap: https://a.test/s.txt\n"),
        f"{A}/s.txt": Reply(200, b"https://a.test/1\nhttps://a.test/2\n"),
    }
    async with served(script) as crawl:
        asking = await crawl.soon(crawl.ask("GET", f"v1/sitemaps?site={A}"))
        await crawl.pass_time(2)
        lines = [json.loads(line) for line in (await asking).value.splitlines()]
    assert [line["url"] for line in lines[:-1]] == [f"{A}/1", f"{A}/2"]
    assert lines[-1] == {"files": [{"url": f"{A}/s.txt", "entries": 2, "problem": None}]}


async def test_events_come_as_they_happen_and_a_slow_client_is_cut(monkeypatch):
    monkeypatch.setattr(endpoints, "_MOST_QUEUED", 3)
    monkeypatch.setattr(endpoints, "_MOST_STREAMS", 1)
    async with served() as crawl:
        assert "'Nothing' is no event" in (await crawl.ask("GET", "v1/events?kinds=Nothing")).error
        async with crawl.session.get(f"{crawl.server.url}v1/events?kinds=Refused") as stream:
            assert (await crawl.ask("GET", "v1/events")).status == 429
            assert (await crawl.permit("/private/1")).status == 403
            lines = [await stream.content.readline() for _ in range(4)]
            assert lines[2] == b"event: Refused\n"
            assert json.loads(lines[3].removeprefix(b"data: "))["line"] == 2
            # More at once than a client may be behind.
            for _ in range(5):
                crawl.gate.services.listener(polite.events.Refused(A, "RULE", None, None))
            with pytest.raises((aiohttp.ClientError, ConnectionError)):
                await stream.content.read()
        await asyncio.sleep(0.05)
        async with crawl.session.get(f"{crawl.server.url}v1/events") as again:
            assert again.status == 200


async def test_the_status_page_and_metrics_are_on_the_same_port():
    async with served() as crawl:
        assert "<!doctype html>" in (await crawl.ask("GET", "")).value.lower()
        await crawl.report(await crawl.permit())
        assert (await crawl.ask("GET", "api/status")).value["agent"] == "TestBot/1.0"
        metrics = (await crawl.ask("GET", "metrics")).value
        assert 'polite_permits_granted_total{agent="testbot"} 1.0' in metrics
        health = (await crawl.ask("GET", "healthz")).value
        assert health == {"ok": True, "waiting": 0, "out": 0, "granted": 1}


# The document.


async def test_the_document_is_valid_and_the_file_of_the_reference_has_it():
    OpenAPIV31SpecValidator(openapi()).validate()
    # polite.serve makes it: python -c "import json, polite.serve; print(json.dumps(polite.serve.openapi(), indent=1))"
    assert json.loads(DOCUMENT.read_text()) == openapi()


async def test_the_document_is_served_and_names_every_path():
    async with served(tokens=TOKENS) as crawl:
        assert (await crawl.ask("GET", "openapi.json")).value == openapi()
    paths = openapi()["paths"]
    assert set(paths["/v1/permits/{id}"]) == {"get", "post", "delete"}
    assert {path for path in paths if path.startswith("/v1/")} >= {"/v1/fetch", "/v1/permits", "/v1/events"}


async def test_an_operators_token_orders_and_sees_all_and_that_of_a_client_does_not() -> None:
    body = {"action": "forbid", "pattern": A, "because": "personal data", "by": "ann"}
    tokens = {"operator": "the-operators-own-token", **TOKENS}
    own, other = ({"Authorization": f"Bearer {tokens[name]}"} for name in ("operator", "one"))
    async with served(tokens=tokens) as crawl:
        for method, path, sent in (
            ("POST", "v1/orders", body),
            ("GET", "v1/events", None),
            ("GET", "api/status", None),
        ):
            assert (await crawl.ask(method, path, sent, **other)).status == 403
        given = await crawl.ask("POST", "v1/orders", body, **own)
        assert [order["by"] for order in given.value["orders"]] == ["operator (ann)"]
        refused = await crawl.permit(headers_sent=other)
        assert (refused.status, refused.value["decision"]["reason"]) == (403, "OPERATOR")
        assert (await crawl.ask("GET", "v1/orders", **other)).value["orders"][0]["pattern"] == A
        assert (await crawl.ask("GET", "api/status", **own)).value["may_order"]
        await crawl.ask("POST", "v1/orders", body | {"action": "release"}, **own)
        assert (await crawl.permit(wait=0, headers_sent=other)).status == 202
        wrong = await crawl.ask("POST", "v1/orders", body | {"pattern": "a"}, **own)
        assert (wrong.status, "pattern" in wrong.error) == (400, True)
    async with served() as crawl:
        # Without a token, anybody on the machine could release what an operator forbids.
        assert "--token-file" in (await crawl.ask("POST", "v1/orders", body)).error
