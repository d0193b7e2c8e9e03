"""`polite fetch --status PORT`: a status page while the run lasts."""

import socket

import aiohttp
import pytest
from aiohttp import web


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def test_a_run_serves_its_status_page_until_it_ends(site):
    port, seen = free_port(), []

    async def look(_):
        connector = aiohttp.TCPConnector(resolver=aiohttp.ThreadedResolver())
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(f"http://127.0.0.1:{port}/api/status") as answer,
        ):
            seen.append(await answer.json())
        return web.Response(text="a page")

    site.pages["/a"] = [look]

    assert site.run("--status", str(port), "/a", "/b") == 0

    assert f"polite: status page: http://127.0.0.1:{port}/\n" in site.err
    assert seen[0]["frontier"]["in_flight"] == 1
    assert seen[0]["held"][0]["url"] == f"{site.origin}/a"
    with socket.socket() as closed:
        assert closed.connect_ex(("127.0.0.1", port))


def test_a_port_that_is_taken_ends_the_run_before_it_begins(site):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert site.run("--status", str(port), "/a") == 2

    assert (
        site.err
        == f"polite: --status {port}: Address already in use; choose another port, or 0 for a free one\n"
    )
    assert site.asked == []


def test_a_port_is_a_number(site, capsys):
    for port in ("-1", "65536", "x"):
        with pytest.raises(SystemExit, match="2"):
            site.run("--status", port, "/a")
        assert "--status must be an integer from 0 to 65535" in capsys.readouterr().err
