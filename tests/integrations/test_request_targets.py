"""The request target that a server sees is, letter by letter, the one that the gate decided about, with every client."""

import random
from contextlib import AsyncExitStack, suppress

import aiohttp
import httpx
import niquests
import pytest
import requests
import urllib3_future.exceptions

import polite
from polite.events import Event, Granted
from polite.testing import ScriptedTransport
from tests.hasty_clock import HastyClock
from tests.integrations.clients import ADAPTERS, ALL, opened
from tests.integrations.site import AGENT, LOOPBACK, PAGE, RawSite, redirect, served_raw

ESCAPES = "% %zz %5 %5d %5D %2f %2F %7e %41 %c3%a9 %C3 %20 %25 %3F /%2e/ /%2E%2e/"
OTHERS = "a Z 7 é 漢 😀 ? ? // / /./ /../ . .. ] [ | ^ { } ` ' < > \\ + & = ; : @ ! * $ # ~ ( ,"
PIECES = (*ESCAPES.split(), *OTHERS.split(), " ", '"')
PATHS = 150
# What a client, or the gate, does not take as a URL.
REFUSALS = (
    polite.InvalidURL,
    requests.exceptions.InvalidURL,
    niquests.exceptions.InvalidURL,
    urllib3_future.exceptions.LocationParseError,  # niquests cannot send some paths that begin with two slashes
    httpx.InvalidURL,
    aiohttp.InvalidURL,
)


def paths() -> list[str]:
    some = random.Random(5)
    made = ["/]secret", "/%x", "/a?", "//a", "/a//b?", "/a?next=http%3A%2F%2Fx%2F"]
    return made + ["/" + "".join(some.choices(PIECES, k=some.randint(1, 7))) for _ in range(PATHS)]


@pytest.fixture
def site():
    with served_raw() as site:
        yield site


class Log(list[str]):
    """A listener of a gate: the URLs that were granted, in their order."""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Granted):
            self.append(event.url)

    def require_same(self, url: str, origin: str, targets: list[str]) -> int:
        """Return how many requests were sent for the URL; what was granted and not sent must be the last."""
        granted, sent = [each.removeprefix(origin) for each in self], targets[:]
        self.clear()
        targets.clear()
        assert sent == granted[: len(sent)], url
        assert len(granted) - len(sent) in (0, 1), url
        return len(sent)


@pytest.fixture
def log() -> Log:
    return Log()


def options():
    return {"fetching": LOOPBACK, "pacing": polite.PacingPolicy(min_delay=0.0), "clock": HastyClock()}


def asked(site):
    for path in paths():
        site.respond = lambda _: PAGE
        yield site.url + path
        hops = [redirect(site.url + path)]
        site.respond = lambda _, hops=hops: hops.pop() if hops else PAGE  # type: ignore[misc]
        yield f"{site.url}/hop"


@pytest.mark.parametrize("name", [*ALL, "open_session"])
async def test_what_is_sent_is_what_was_decided(name: str, site: RawSite, log: Log):
    sent = 0
    async with AsyncExitStack() as closing:
        if name == "open_session":
            session = await closing.enter_async_context(polite.open_session(AGENT, listener=log, **options()))
            get = session.get
        else:
            get = (await closing.enter_async_context(opened(name, listener=log, **options()))).get
        for url in asked(site):
            with suppress(*REFUSALS):
                answer = await get(url)
                if name == "open_session":
                    await answer.read()
            sent += log.require_same(url, site.url, site.targets)

    assert sent > 2.9 * PATHS


@pytest.mark.parametrize("name", [*ADAPTERS, "curl_cffi"])
async def test_what_a_proxy_gets_is_what_was_decided(name: str, site: RawSite, log: Log):
    proxies, pages = {"http": site.url}, ScriptedTransport()
    async with opened(name, listener=log, **options(), transports={"http": pages}) as client:
        for path in [*paths(), "/a;", "/a;?"]:
            with suppress(*REFUSALS):
                await client.get(f"http://a.test{path}", proxies=proxies)
            log.require_same(path, "", site.targets)
