"""How a run handles ^C and SIGTERM."""

import asyncio
import signal

import pytest
from aiohttp import web

from polite.cli.fetch.archive import Warc


def _stop(number, after_s=0.0):
    """Return a response during which the run gets a signal."""

    async def stop(request):
        signal.raise_signal(number)
        await asyncio.sleep(after_s)
        return web.Response(text="the last one")

    return stop


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_finishes_requests_in_flight(number, status, site):
    site.pages["/stop"] = [_stop(number, 2)]
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    assert site.run("/stop", "/a", "/b") == status

    assert list(site.records) == site.paths == ["/stop"]
    assert "polite: finishing requests in flight; interrupt again to stop at once\n" in site.err
    assert site.err.endswith("interrupted; 2 waiting URLs are lost (--resume keeps them)\n")
    # Afterwards each means what it meant before.
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize(
    ("numbers", "status", "shortest"),
    [
        ([signal.SIGINT], 130, 11),
        ([signal.SIGINT, signal.SIGTERM], 130, 3),
        ([signal.SIGTERM, signal.SIGINT], 143, 3),
    ],
)
def test_the_first_interrupt_waits_for_a_limited_time_and_the_second_not_at_all(
    numbers, status, shortest, site
):
    async def hang(request):
        for number in numbers:
            signal.raise_signal(number)
            await asyncio.sleep(2)
        await asyncio.sleep(1_000)

    site.pages["/hang"] = [hang]

    assert site.run("--timeout", "500", "/hang") == status
    assert site.records == {}
    assert shortest <= site.took_s <= shortest + 1


@pytest.mark.parametrize(("presses", "closed"), [(1, True), (3, False)])
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
