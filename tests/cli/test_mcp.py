"""`polite mcp`: what an agent gets from its tools, by the SDK's own client, from a site on loopback and from a served gate."""

import sys
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import web
from mcp import Client, StdioServerParameters

import polite
from polite.cli import mcp
from polite.cli.main import main, parse
from polite.serve import serve
from tests.serve.support import handled_by

ROBOTS = "User-agent: *\nDisallow: /private\n"
PAGE = "<html><script>no()</script><body><h1>Title</h1><p>A <a href='/x'>link</a> and <b>more</b>.</p></body></html>"


def options(*arguments):
    return parse(["mcp", "--agent", "TestBot/1.0", "--delay", "0", *arguments])


@asynccontextmanager
async def agent(*arguments, private="--allow-private", **answers):
    """Yield a function that calls a tool about a path of a site, and the paths that the site was asked for."""
    asked = []

    async def handle(request):
        asked.append(request.path)
        return web.Response(**answers.get(request.path.strip("/").partition(".")[0], {"text": ROBOTS}))

    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(handled_by(handle))
        source = await stack.enter_async_context(
            mcp.source_for(options(*filter(None, (private, *arguments))))
        )
        client = await stack.enter_async_context(Client(mcp.server(source)))

        async def call(tool, path, **more):
            result = await client.call_tool(tool, {"url": url + path, **more})
            text = result.content[0].text.removeprefix(f"Error executing tool {tool}: ")
            return result.is_error, text.replace(url, "")

        yield call, asked


async def test_a_page_is_text_with_the_rest_of_a_long_one_at_no_more_requests() -> None:
    async with agent(page={"text": PAGE, "content_type": "text/html"}) as (call, asked):
        text = "/page (status 200, text/html)\n\n# Title\n\nA [link](/x) and **more**."
        assert await call("fetch", "/page") == (False, text)
        assert (await call("fetch", "/page", raw=True))[1].endswith(PAGE)
        first, rest = [(await call("fetch", "/page", max_length=9, start_index=start))[1] for start in (0, 9)]
        assert first.endswith("\n\n# Title\n\n\n\n[26 characters more: call fetch with start_index=9]")
        assert rest.endswith("\n\nA [link](\n\n[17 characters more: call fetch with start_index=18]")
    assert asked == ["/robots.txt", "/page", "/page", "/page"]


async def test_what_is_disallowed_says_the_rule_and_its_line_and_is_not_fetched() -> None:
    async with agent() as (call, asked):
        said = "/private/a: disallowed by Disallow: /private (line 2)"
        assert await call("fetch", "/private/a") == (True, said)
        assert await call("check", "/private/a") == (False, said)
        assert (await call("explain", "/private/a"))[1].splitlines()[1].strip() == said.partition(" ")[2]
    assert asked == ["/robots.txt"]


async def test_each_redirect_is_decided_for_itself() -> None:
    to = {"a": "/private/b", "c": "/c"}
    answers = {name: {"status": 302, "headers": {"Location": to[name]}} for name in to}
    async with agent(**answers) as (call, asked):
        assert await call("fetch", "/a") == (True, "/private/b: disallowed by Disallow: /private (line 2)")
        assert await call("fetch", "/c") == (True, "/c: more than 5 redirects")
    assert asked == ["/robots.txt", "/a", *["/c"] * 6]


@pytest.mark.parametrize(
    ("path", "answer", "said"),
    [
        ("page", {"status": 404}, "/page: the site answered status 404"),
        (
            "page",
            {"status": 429, "headers": {"Retry-After": "9"}},
            "answered status 429; it asks to wait for 9",
        ),
        ("page", {"body": b"\x89PNG", "content_type": "image/png"}, "/page: it is image/png, and no text"),
        ("page", {"text": "<div>" * 5_000, "content_type": "text/html"}, "the page is nested too deeply"),
        ("robots", {"status": 500}, "disallowed for now (RFC 9309, 2.3.1.4); try again in"),
    ],
)
async def test_what_is_no_page_is_an_error_of_the_tool(path: str, answer, said: str) -> None:
    async with agent(**{path: answer}) as (call, asked):
        is_error, text = await call("fetch", "/page")
        assert is_error
        assert said in text
        assert ("/page" in asked) == (path == "page")


async def test_a_private_address_is_refused_and_sizes_are_limited() -> None:
    async with agent(private="") as (call, asked):
        assert "--allow-private" in (await call("fetch", "/page"))[1]
    assert asked == []
    async with agent("--max-bytes", "10", page={"text": "x" * 50}) as (call, _):
        assert "\n\nxxxxxxxxxx\n\n[the page is longer than the limit" in (await call("fetch", "/page"))[1]
        assert (await call("fetch", "/page", max_length=0))[0]
        assert (await call("fetch", "/" + "x" * 9_000))[0]


async def test_a_call_ends_before_a_turn_that_is_far_away(monkeypatch) -> None:
    monkeypatch.setattr(mcp, "_CALL_S", 0.3)
    async with agent("--delay", "30") as (call, _):
        assert (await call("fetch", "/page"))[1].startswith("no answer within 0.3 s")


async def test_a_served_gate_answers_with_its_token(monkeypatch) -> None:
    monkeypatch.setenv("POLITE_SERVE_TOKEN", "secret")

    async def handle(request):
        if request.headers.get("Authorization") != "Bearer secret":
            return web.json_response({"error": "a token is needed"}, status=401)
        url = request.query["url"]
        match request.path, url:
            case "/v1/fetch", "http://a.test/":
                return web.Response(text="text", headers={"Polite-Url": "http://a.test/last"})
            case "/v1/fetch", "http://late.test/":
                return web.json_response({"error": "out of reach"}, status=503, headers={"Retry-After": "7"})
            case "/v1/check", _:
                return web.json_response({"url": url, "text": "allowed"})
            case "/v1/explain", _:
                return web.json_response({"explanation": "all of it"})
        return web.json_response({"error": "disallowed"}, status=403)

    async with AsyncExitStack() as stack:
        gate = await stack.enter_async_context(handled_by(handle))
        source = await stack.enter_async_context(mcp.source_for(options("--gate", f"{gate}/")))
        client = await stack.enter_async_context(Client(mcp.server(source)))

        async def said(tool, url):
            text = (await client.call_tool(tool, {"url": url})).content[0].text
            return text.removeprefix("Error executing tool fetch: ")

        assert await said("fetch", "http://a.test/") == "http://a.test/last (status 200, text/plain)\n\ntext"
        assert await said("fetch", "http://b.test/") == "disallowed"
        assert await said("fetch", "http://late.test/") == "out of reach; try again in 7 s"
        assert await said("check", "http://a.test/") == "http://a.test/: allowed"
        assert await said("explain", "http://a.test/") == "all of it"


async def test_a_served_gate_may_have_a_socket_file(tmp_path) -> None:
    gate = f"unix:{tmp_path / 'gate.sock'}"
    async with (
        polite.open_gate("TestBot/1.0") as opened,
        serve(opened, unix=gate[5:], grace=0.0),
        mcp.source_for(options("--gate", gate)) as source,
    ):
        with pytest.raises(mcp.Failed, match="no URL to fetch"):
            await source.told("check", "nothing")


def test_a_name_and_a_gate_that_is_a_url_are_needed(capsys) -> None:
    for more, said in (
        ([], "needs a name by which sites know your crawler"),
        (["--gate", "127.0.0.1:8700"], "--gate must be the address of a polite serve"),
        (["--gate", "http://127.0.0.1:8700", "--journal", "j"], "--journal has no effect with --gate"),
        (["--gate", "unix:gate.sock", "--agent", "ExampleBot/1.0"], "--agent has no effect with --gate"),
    ):
        assert main(["mcp", *more]) == 2
        assert said in capsys.readouterr().err


async def test_the_program_speaks_on_standard_input_and_output() -> None:
    arguments = ["-m", "polite", "mcp", "--agent", "TestBot/1.0"]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        tools = await client.list_tools()
        assert sorted(tool.name for tool in tools.tools) == ["check", "explain", "fetch"]
        result = await client.call_tool("check", {"url": "mailto:a@b.test"})
        assert "is no URL to fetch" in result.content[0].text
