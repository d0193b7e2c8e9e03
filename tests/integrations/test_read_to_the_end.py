"""What clients read to its end is remembered for recrawling, and nothing else. Against a real server in another thread."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import httpx2
import niquests
import pytest
import requests
from curl_cffi.curl import CURL_WRITEFUNC_ERROR
from curl_cffi.requests import AsyncSession, Session
from curl_cffi.requests.exceptions import RequestException

import polite
from polite.integrations import curl_cffi
from polite.integrations.httpx import transport
from polite.integrations.niquests import AsyncPoliteAdapter
from polite.integrations.niquests import PoliteAdapter as NiquestsAdapter
from polite.integrations.requests import PoliteAdapter as RequestsAdapter
from tests.hasty_clock import HastyClock
from tests.integrations.site import AGENT, LOOPBACK, PACING, Site, served_in_a_thread

OPTIONS: Any = {"fetching": LOOPBACK, "pacing": PACING, "recrawl": polite.RecrawlPolicy()}
TAGGED = {"If-None-Match": '"1"'}
LENGTH = 800_000
METHODS = pytest.mark.parametrize("method", ["HEAD", "POST"])
KINDS = pytest.mark.parametrize("path", ["/tagged", "/tagged/chunked"])


@pytest.fixture
def clock() -> HastyClock:
    return HastyClock()


@pytest.fixture
def site(clock: HastyClock) -> Iterator[Site]:
    with served_in_a_thread(lambda: clock.now) as site:
        yield site


@pytest.fixture
def gate(clock: HastyClock) -> Iterator[polite.blocking.Gate]:
    with polite.blocking.open_gate(AGENT, clock=clock, **OPTIONS) as gate:
        yield gate


@pytest.fixture
async def loop_gate(clock: HastyClock) -> AsyncIterator[polite.Gate]:
    async with polite.open_gate(AGENT, clock=clock, **OPTIONS) as gate:
        yield gate


class Blocking:
    """A client for threads: how it reads a page, and how it leaves it early."""

    def __init__(self, module: Any, gate: polite.blocking.Gate) -> None:
        self.failure = module.RequestException if hasattr(module, "RequestException") else module.HTTPError
        self.streams = hasattr(module, "HTTPTransport")
        if self.streams:
            self.client = module.Client(transport=transport(gate, module))
        else:
            self.client = module.Session()
            adapter = RequestsAdapter if module is requests else NiquestsAdapter
            self.client.mount("http://", adapter(gate))

    def read(self, url: str) -> int:
        return len(self.client.get(url).content)

    def opened(self, url: str) -> Any:
        return self.client.stream("GET", url) if self.streams else self.client.get(url, stream=True)

    def pieces(self, response: Any) -> Iterator[bytes]:
        pieces: Iterator[bytes] = (
            response.iter_bytes(10_000) if self.streams else response.iter_content(10_000)
        )
        return pieces


@pytest.fixture(params=[httpx, httpx2, requests, niquests], ids=lambda module: module.__name__)
def blocking(request: pytest.FixtureRequest, gate: polite.blocking.Gate) -> Iterator[Blocking]:
    blocking = Blocking(request.param, gate)
    with blocking.client:
        yield blocking


@KINDS
def test_a_body_that_was_read_is_remembered(
    blocking: Blocking, gate: polite.blocking.Gate, site: Site, path: str
) -> None:
    assert blocking.read(site.url(path)) == LENGTH

    assert gate.conditional(site.url(path)) == TAGGED


@KINDS
def test_a_body_that_was_read_in_pieces_is_remembered(
    blocking: Blocking, gate: polite.blocking.Gate, site: Site, path: str
) -> None:
    with blocking.opened(site.url(path)) as response:
        assert sum(len(piece) for piece in blocking.pieces(response)) == LENGTH

    assert gate.conditional(site.url(path)) == TAGGED


def test_an_empty_body_is_remembered_that_nobody_asked_for(
    blocking: Blocking, gate: polite.blocking.Gate, site: Site
) -> None:
    with blocking.opened(site.url("/tagged/empty")):
        pass

    assert gate.conditional(site.url("/tagged/empty")) == TAGGED


@KINDS
@pytest.mark.parametrize("pieces", [0, 1])
def test_a_body_that_was_left_early_is_not_remembered(
    blocking: Blocking, gate: polite.blocking.Gate, site: Site, path: str, pieces: int
) -> None:
    with blocking.opened(site.url(path)) as response:
        iterator = blocking.pieces(response)
        assert len([next(iterator) for _ in range(pieces)]) == pieces

    assert gate.conditional(site.url(path)) == {}


@KINDS
def test_a_response_that_was_dropped_is_not_remembered(
    blocking: Blocking, gate: polite.blocking.Gate, site: Site, path: str
) -> None:
    if blocking.streams:
        blocking.client.send(blocking.client.build_request("GET", site.url(path)), stream=True)
    else:
        blocking.opened(site.url(path))
    gc.collect()
    # It waits for the turn that the dropped one held.
    blocking.read(site.url("/next"))

    assert gate.conditional(site.url(path)) == {}


@METHODS
def test_the_answer_to_another_method_is_not_remembered(
    blocking: Blocking, gate: polite.blocking.Gate, site: Site, method: str
) -> None:
    assert blocking.client.request(method, site.url("/tagged/empty")).headers["ETag"] == '"1"'

    assert gate.conditional(site.url("/tagged/empty")) == {}


@KINDS
@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_body_that_broke_off_is_not_remembered(
    blocking: Blocking, gate: polite.blocking.Gate, site: Site, path: str, in_pieces: bool
) -> None:
    url = site.url(f"{path}/cut")
    with pytest.raises(blocking.failure):
        if in_pieces:
            with blocking.opened(url) as response:
                assert sum(len(piece) for piece in blocking.pieces(response)) < LENGTH
        else:
            blocking.read(url)

    assert gate.conditional(url) == {}


class Awaited:
    """A client on an event loop: how it reads a page, and how it leaves it early."""

    def __init__(self, module: Any, gate: polite.Gate) -> None:
        self.niquests = module is niquests
        self.failure = module.RequestException if self.niquests else module.HTTPError
        if self.niquests:
            self.client = niquests.AsyncSession()
            self.client.mount("http://", AsyncPoliteAdapter(gate))
        else:
            self.client = module.AsyncClient(transport=transport(gate, module))

    async def read(self, url: str) -> int:
        return len((await self.client.get(url)).content)

    async def read_in_pieces(self, url: str, *, most: int | None = None) -> int:
        """Read at most so many pieces, then close it."""
        return await (self._niquests(url, most) if self.niquests else self._httpx(url, most))

    async def _niquests(self, url: str, most: int | None) -> int:
        response = await self.client.get(url, stream=True)
        try:
            return await taken(await response.iter_content(10_000), most)
        finally:
            await response.close()

    async def _httpx(self, url: str, most: int | None) -> int:
        async with self.client.stream("GET", url) as response:
            return await taken(response.aiter_bytes(10_000), most)


async def taken(pieces: AsyncIterator[bytes], most: int | None) -> int:
    read, n = 0, 0
    while most is None or n < most:
        try:
            read += len(await anext(pieces))
        except StopAsyncIteration:
            break
        n += 1
    return read


@pytest.fixture(params=[httpx, httpx2, niquests], ids=lambda module: module.__name__)
async def awaited(request: pytest.FixtureRequest, loop_gate: polite.Gate) -> AsyncIterator[Awaited]:
    awaited = Awaited(request.param, loop_gate)
    async with awaited.client:
        yield awaited


@KINDS
async def test_tasks_that_read_a_body_have_it_remembered(
    awaited: Awaited, loop_gate: polite.Gate, site: Site, path: str
) -> None:
    assert await awaited.read(site.url(path)) == LENGTH
    assert await awaited.read_in_pieces(site.url(path + "/2")) == LENGTH

    assert await loop_gate.conditional(site.url(path)) == TAGGED
    assert await loop_gate.conditional(site.url(path + "/2")) == TAGGED


@KINDS
@pytest.mark.parametrize("pieces", [0, 1])
async def test_tasks_that_leave_a_body_early_do_not(
    awaited: Awaited, loop_gate: polite.Gate, site: Site, path: str, pieces: int
) -> None:
    assert await awaited.read_in_pieces(site.url(path), most=pieces) == pieces * 10_000

    assert await loop_gate.conditional(site.url(path)) == {}


@KINDS
async def test_nor_do_those_whose_body_broke_off(
    awaited: Awaited, loop_gate: polite.Gate, site: Site, path: str
) -> None:
    for how in (awaited.read, awaited.read_in_pieces):
        with pytest.raises(awaited.failure):
            await how(site.url(f"{path}/cut"))  # type: ignore[operator]

    assert await loop_gate.conditional(site.url(f"{path}/cut")) == {}


@METHODS
async def test_nor_is_the_answer_that_tasks_get_to_another_method(
    awaited: Awaited, loop_gate: polite.Gate, site: Site, method: str
) -> None:
    await awaited.client.request(method, site.url("/tagged/empty"))

    assert await loop_gate.conditional(site.url("/tagged/empty")) == {}


@KINDS
def test_curl_cffi_has_a_body_remembered_that_was_read(
    gate: polite.blocking.Gate, site: Site, path: str
) -> None:
    with Session() as session:
        assert len(curl_cffi.request(gate, session, "GET", site.url(path)).content) == LENGTH
        with pytest.raises(RequestException):
            curl_cffi.request(gate, session, "GET", site.url(f"{path}/cut"))
        with pytest.raises(RequestException):
            curl_cffi.request(
                gate,
                session,
                "GET",
                site.url(f"{path}/left"),
                content_callback=lambda _: CURL_WRITEFUNC_ERROR,
            )

    assert gate.conditional(site.url(path)) == TAGGED
    assert gate.conditional(site.url(f"{path}/cut")) == gate.conditional(site.url(f"{path}/left")) == {}


@KINDS
async def test_curl_cffi_on_an_event_loop_does_so_too(loop_gate: polite.Gate, site: Site, path: str) -> None:
    async with AsyncSession() as session:
        assert (
            len((await curl_cffi.async_request(loop_gate, session, "GET", site.url(path))).content) == LENGTH
        )
        with pytest.raises(RequestException):
            await curl_cffi.async_request(loop_gate, session, "GET", site.url(f"{path}/cut"))

    assert await loop_gate.conditional(site.url(path)) == TAGGED
    assert await loop_gate.conditional(site.url(f"{path}/cut")) == {}


@METHODS
async def test_nor_is_the_answer_to_another_method_of_curl_cffi(
    gate: polite.blocking.Gate, loop_gate: polite.Gate, site: Site, method: Any
) -> None:
    def blocks() -> dict[str, str]:
        with Session() as session:
            curl_cffi.request(gate, session, method, site.url("/tagged/empty"))
        return gate.conditional(site.url("/tagged/empty"))

    async with AsyncSession() as session:
        await curl_cffi.async_request(loop_gate, session, method, site.url("/tagged/empty"))

    assert await loop_gate.conditional(site.url("/tagged/empty")) == await asyncio.to_thread(blocks) == {}


def test_a_redirect_of_curl_cffi_repeats_no_condition(gate: polite.blocking.Gate, site: Site) -> None:
    with Session() as session:
        response = curl_cffi.request(
            gate, session, "GET", site.url("/hop?to=/headers"), headers={**TAGGED, "X-Mine": "kept"}
        )

    assert "If-None-Match" not in response.text
    assert "X-Mine" in response.text
