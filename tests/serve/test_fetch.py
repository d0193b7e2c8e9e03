"""GET /v1/fetch: what is passed on, and what is not."""

import asyncio
import gzip

import aiohttp
import pytest
from aiohttp import web

import polite
from polite.serve import serve
from tests.serve.support import client, relaying, served, site

BODY = gzip.compress(b"hello " * 100)


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    match request.path:
        case "/page":
            headers = {"Content-Encoding": "gzip", "X-Own": "a", "Connection": "close, X-Hop", "X-Hop": "b"}
            return web.Response(
                status=203, reason="Odd", body=BODY, headers=headers, content_type="text/plain"
            )
        case "/hop":
            return web.Response(status=302, headers={"Location": request.query["to"]})
        case "/sent":
            return web.Response(text="\n".join(f"{name}: {value}" for name, value in request.headers.items()))
        case "/endless":
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"x" * 10_000)
        case "/large":
            return web.Response(body=b"x" * 200_000)
        case "/cut":
            response = web.StreamResponse(headers={"Content-Length": "100"})
            await response.prepare(request)
            await response.write(b"x" * 50)
            assert request.transport is not None
            request.transport.close()
            return response
        case _:
            await asyncio.sleep(60)
            raise AssertionError


async def test_status_headers_and_body_are_the_sites():
    async with relaying(answer) as (crawl, url):
        async with crawl.session.get(f"{crawl.server.url}v1/fetch?url={url}/page") as response:
            assert (response.status, response.reason) == (203, "Odd")
            assert await response.read() == BODY
        assert (response.headers["X-Own"], response.headers["Content-Encoding"]) == ("a", "gzip")
        assert "X-Hop" not in response.headers
        assert response.headers["Polite-Url"] == f"{url}/page"
        assert response.headers["Polite-Decision"].startswith("allowed: ")
        assert response.headers["Content-Security-Policy"] == "sandbox"
        assert (crawl.gate.counters.granted, crawl.gate.inside) == (1, 0)


async def test_each_redirect_takes_a_turn_and_with_none_it_is_passed_on():
    async with relaying(answer) as (crawl, url):
        asked = {"url": f"{url}/hop?to=/hop%3Fto%3D/page"}
        async with crawl.session.get(f"{crawl.server.url}v1/fetch", params=asked) as response:
            assert (response.status, response.headers["Polite-Redirects"]) == (203, "2")
        assert crawl.gate.counters.granted == 3
        for redirects, status in (("1", 502), ("0", 302)):
            asked["redirects"] = redirects
            async with crawl.session.get(
                f"{crawl.server.url}v1/fetch", params=asked, allow_redirects=False
            ) as response:
                assert response.status == status
        away = f"{url}/hop?to=file:///etc/passwd"
        async with crawl.session.get(f"{crawl.server.url}v1/fetch", params={"url": away}) as response:
            assert response.status == 502
        assert crawl.gate.inside == 0


async def test_credentials_are_passed_on_only_if_asked_and_to_no_other_site():
    sent = {
        "Cookie": "a=b",
        "Authorization": "Bearer of-somebody",
        "Accept": "text/x",
        "Accept-Encoding": "br",
    }
    for forward, passed in (((), False), (("Cookie",), True)):
        async with relaying(answer, forward=forward) as (crawl, url), site(answer) as other:
            asked = f"{crawl.server.url}v1/fetch?url={url}/sent"
            async with crawl.session.get(asked, headers=sent) as response:
                got = await response.text()
            assert ("Cookie: a=b" in got) is passed
            assert "Authorization" not in got
            assert "Accept: text/x" in got
            assert "User-Agent: TestBot/1.0" in got
            assert "Accept-Encoding: br" in got
            away = {"url": f"{url}/hop?to={other}/sent"}
            async with crawl.session.get(asked.partition("?")[0], params=away, headers=sent) as response:
                got = await response.text()
            assert ("User-Agent: TestBot/1.0" in got, "Cookie" in got) == (True, False)


async def test_what_is_too_large_or_broken_is_no_whole_response():
    limits = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"], timeout=5.0, max_bytes=100_000)
    async with relaying(answer, fetching=limits) as (crawl, url):
        assert (await crawl.ask("GET", f"v1/fetch?url={url}/large")).status == 502
        for path in ("/endless", "/cut"):
            with pytest.raises(aiohttp.ClientError):
                await crawl.ask("GET", f"v1/fetch?url={url}{path}")
        await asyncio.sleep(0.05)
        assert crawl.gate.inside == 0


async def test_a_site_that_does_not_answer_or_a_caller_that_goes_away_ends_the_permit():
    async with relaying(answer) as (crawl, url):
        assert (await crawl.ask("GET", f"v1/fetch?url={url}/never&wait=1")).status == 504
        gone = await crawl.soon(crawl.ask("GET", f"v1/fetch?url={url}/never"))
        assert crawl.gate.inside == 1
        gone.cancel()
        await asyncio.sleep(0.1)
        assert crawl.gate.inside == 0


async def test_private_addresses_browsers_and_disallowed_pages_are_refused():
    async with served() as crawl:
        for url, status in {"file:///etc/passwd": 400, "https://a.test/private/x": 403}.items():
            assert (await crawl.ask("GET", f"v1/fetch?url={url}")).status == status
        browser = await crawl.ask("GET", "v1/fetch?url=https://a.test/", **{"Sec-Fetch-Mode": "navigate"})
        assert browser.status == 403
    async with relaying(answer, fetching=polite.FetchPolicy()) as (crawl, url):
        # The gate may, so robots.txt is known; the relay may not.
        refused = await crawl.ask("GET", f"v1/fetch?url={url}/page")
        assert (refused.status, "127.0.0.1 is not public" in refused.error) == (403, True)
    async with (
        polite.open_gate("TestBot/1.0") as gate,
        serve(gate, grace=0.0) as running,
        client() as session,
    ):
        for url in ("http://127.0.0.1:1/", "http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/"):
            async with session.get(f"{running.url}v1/fetch", params={"url": url}) as response:
                assert response.status == 403
