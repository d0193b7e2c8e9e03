"""Runs of `polite fetch` that ^C or SIGTERM interrupts."""

import asyncio
import signal

import pytest
from aiohttp import web

from polite.cli.fetch.archive import Warc
from tests.cli.fetch.conftest import limit_capacity


def test_an_interrupt_finishes_requests_in_flight(site):
    async def stop(request):
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(2)
        return web.Response(text="finished")

    site.pages["/stop"] = [stop]
    before = signal.getsignal(signal.SIGINT)

    assert site.run("/stop", "/a", "/b") == 130

    assert list(site.records) == ["/stop"]
    assert site.paths == ["/stop"]
    assert "polite: finishing requests in flight; interrupt again to stop at once\n" in site.err
    assert site.err.endswith("interrupted; 2 waiting URLs are lost (--resume keeps them)\n")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("times", "shortest"), [(1, 11), (2, 3)])
def test_the_first_interrupt_waits_for_a_limited_time_and_the_second_not_at_all(times, shortest, site):
    async def hang(request):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(2)
        await asyncio.sleep(1_000)

    site.pages["/hang"] = [hang]

    assert site.run("--timeout", "500", "/hang") == 130
    assert site.records == {}
    assert shortest <= site.took_s <= shortest + 1


def test_sigterm_is_an_interrupt_with_its_own_exit_status(site):
    async def terminated(request):
        signal.raise_signal(signal.SIGTERM)
        return web.Response(text="the last one")

    site.pages["/stop"] = [terminated]

    assert site.run("/stop", "/a") == 143
    assert site.records["/stop"]["outcome"] == "fetched"
    assert site.err.endswith("interrupted; 1 waiting URL is lost (--resume keeps them)\n")


@pytest.mark.parametrize(("presses", "closed"), [(1, True), (2, True), (3, False)])
def test_an_interrupt_while_files_close_lets_them_close(presses, closed, site, monkeypatch, tmp_path):
    ended = []

    async def close(self):
        for _ in range(presses):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(1)
        ended.append(True)

    monkeypatch.setattr(Warc, "close", close)

    assert site.run("--warc", str(tmp_path / "a.warc.gz"), "/a") == 130
    assert bool(ended) is closed
    assert site.records["/a"]["outcome"] == "fetched"


def test_an_interrupt_ends_the_reading_of_the_list(site, monkeypatch):
    async def stop(request):
        signal.raise_signal(signal.SIGINT)
        return web.Response()

    site.pages["/a"] = [stop]
    limit_capacity(1, monkeypatch)

    assert site.run("/a", "/b", "/c") == 130
    assert "/c" not in site.paths
    assert site.err.endswith(
        "1 waiting URL is lost (--resume keeps them); the list was not read to its end, so pass it again\n"
    )
