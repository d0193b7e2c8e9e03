"""The adapters of requests and niquests: retries of urllib3, its pool, and requests that were prepared before."""

from importlib import import_module

import pytest

import polite
from tests.integrations.clients import ADAPTERS, opened

pytestmark = pytest.mark.parametrize("name", ADAPTERS)


def retrying(name, **options):
    urllib3 = import_module("urllib3.util" if name == "requests" else "urllib3_future.util")
    return {"max_retries": urllib3.Retry(**options)}


async def test_retries_after_a_status_take_turns_of_their_own(name, clock, site):
    site.refusals = 2
    async with opened(name, clock, adapter=retrying(name, total=3, status_forcelist=[429])) as client:
        for path in ("/refuse", "/next"):
            assert (await client.get(site.url(path))).status == 200
    assert site.paths == ["/refuse"] * 3 + ["/next"]
    assert min(site.gaps()[1:3]) >= 60
    assert site.paced()


async def test_retries_after_a_failure_take_turns_of_their_own(name, clock, site):
    async with opened(name, clock, adapter=retrying(name, total=2)) as client:
        with pytest.raises(client.module.ConnectionError):
            await client.get(site.url("/broken"))
        assert (await client.get(site.url("/next"))).status == 200
    assert site.paths == ["/broken"] * 3 + ["/next"]
    assert site.paced()


async def test_the_smallest_pool_is_enough(name, clock, site):
    smallest = {"pool_connections": 1, "pool_maxsize": 1, "pool_block": True}
    async with opened(name, clock, adapter=smallest) as client:
        for n in range(4):
            assert (await client.get(site.url(f"/{n}", other=bool(n % 2)))).status == 200
    assert site.paced()


async def test_a_prepared_request_is_sent_as_it_was_decided(name, clock, site):
    async with opened(name, clock) as client:
        prepared = client.module.Request("GET", site.url("/")).prepare()
        prepared.url = site.url("/private/../a|b?c=%zz#d")
        response = await client.do(client.session.send, prepared)
        assert response.request.url == site.url("/a%7Cb?c=%25zz")
        prepared.url = site.url("/open/../private/x")
        with pytest.raises(polite.Disallowed):
            await client.do(client.session.send, prepared)

    assert len(site.paths) == 1
