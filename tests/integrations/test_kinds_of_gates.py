"""A client with the wrong kind of gate, for threads or for an event loop, is told at once which one it needs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
from curl_cffi.requests import AsyncSession, Session

import polite
from polite.integrations import aiohttp as of_aiohttp
from polite.integrations import curl_cffi as of_curl_cffi
from polite.integrations import niquests as of_niquests
from polite.integrations import requests as of_requests
from polite.integrations.httpx import transport
from polite.testing import LoopClock
from tests.hasty_clock import HastyClock

AGENT, URL = "TestBot/1.0", "http://127.0.0.1:9/"
FOR_THREADS = r"needs a gate of polite\.blocking\.open_gate"
FOR_A_LOOP = r"needs a gate of polite\.open_gate"


@pytest.fixture(params=[httpx, httpx2], ids=lambda module: module.__name__)
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def blocking_gate() -> Any:
    with polite.blocking.open_gate(AGENT, clock=HastyClock()) as gate:
        yield gate


@pytest.fixture
async def gate() -> AsyncIterator[polite.Gate]:
    async with polite.open_gate(AGENT, clock=LoopClock()) as gate:
        yield gate


async def test_a_client_of_httpx_for_threads(module: Any, gate: polite.Gate):
    client = module.Client(transport=transport(gate, module))

    with pytest.raises(polite.InvalidOption, match=FOR_THREADS):
        client.get(URL)
    with pytest.raises(polite.InvalidOption, match=FOR_THREADS):
        client.close()
    with (
        pytest.raises(polite.InvalidOption, match=FOR_THREADS),
        module.Client(transport=transport(gate, module)),
    ):
        pass


def test_a_client_of_httpx_for_a_loop(module: Any, blocking_gate: polite.blocking.Gate):
    async def get() -> None:
        await module.AsyncClient(transport=transport(blocking_gate, module)).get(URL)

    async def enter() -> None:
        async with module.AsyncClient(transport=transport(blocking_gate, module)):
            pass

    async def close() -> None:
        await module.AsyncClient(transport=transport(blocking_gate, module)).aclose()

    for call in (get, enter, close):
        with pytest.raises(polite.InvalidOption, match=FOR_A_LOOP):
            asyncio.run(call())


@pytest.mark.parametrize("adapter", [of_requests.PoliteAdapter, of_niquests.PoliteAdapter])
async def test_an_adapter_for_threads(adapter: Any, gate: polite.Gate):
    with pytest.raises(polite.InvalidOption, match=FOR_THREADS):
        adapter(gate)


def test_an_adapter_for_a_loop(blocking_gate: polite.blocking.Gate):
    with pytest.raises(polite.InvalidOption, match=FOR_A_LOOP):
        of_niquests.AsyncPoliteAdapter(blocking_gate)  # type: ignore[arg-type]


async def test_the_functions_of_curl_cffi(gate: polite.Gate):
    with Session() as session, pytest.raises(polite.InvalidOption, match=FOR_THREADS):
        of_curl_cffi.request(gate, session, "GET", URL)  # type: ignore[arg-type]


def test_the_async_function_of_curl_cffi(blocking_gate: polite.blocking.Gate):
    async def run() -> None:
        async with AsyncSession() as session:
            await of_curl_cffi.async_request(blocking_gate, session, "GET", URL)  # type: ignore[arg-type]

    with pytest.raises(polite.InvalidOption, match=FOR_A_LOOP):
        asyncio.run(run())


def test_the_middleware_of_aiohttp(blocking_gate: polite.blocking.Gate):
    with pytest.raises(polite.InvalidOption, match=FOR_A_LOOP):
        of_aiohttp.middleware(blocking_gate)  # type: ignore[arg-type]


async def test_the_middleware_that_was_not_called():
    connector = polite.guarded_connector()
    async with aiohttp.ClientSession(connector=connector, middlewares=[of_aiohttp.middleware]) as session:  # type: ignore[list-item]
        with pytest.raises(polite.InvalidOption, match=r"write \[middleware\(gate\)\]"):
            await session.get(URL)
