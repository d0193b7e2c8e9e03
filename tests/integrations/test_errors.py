"""An error of polite is also the base error of the client that raises it, and stays what it is."""

import copy
import pickle

import aiohttp
import curl_cffi.requests.exceptions
import httpx
import httpx2
import niquests
import pytest
import requests

import polite
from polite.gate.fetcher import SignerFailed
from polite.integrations.hop import raised_as
from polite.robots.exchange import Reply
from polite.robots.rules import RuleSet
from polite.testing import ScriptedTransport
from tests.hasty_clock import HastyClock
from tests.integrations.clients import ALL, opened

URL = "http://127.0.0.1:9/private"
OF_CURL = curl_cffi.requests.exceptions.RequestException
BASES = [aiohttp.ClientError, httpx.RequestError, httpx2.RequestError, OF_CURL]
BASES += [requests.RequestException, niquests.RequestException]
DECISION = RuleSet.deny_all(polite.Reason.UNREACHABLE).decide("/a")
ERRORS = [
    polite.Disallowed(DECISION, url="https://user:pass@a.test/a"),
    polite.RobotsUnreachable(DECISION, url="https://a.test/a", retry_after_s=5.0),
    polite.InvalidURL("http://", "the host is empty", 7),
    polite.InvalidUserAgent("another"),
    polite.InvalidOption("an option"),
    polite.GateClosed("closed", url="https://a.test/"),
    polite.PermitMisused("misused", url="https://a.test/"),
    polite.TurnLost("lost", url="https://a.test/"),
    polite.Overloaded("full", url="https://a.test/"),
    polite.OriginDeclined("https://a.test/", "max_pages", 3, "no more"),
    polite.StoreFailed("no store", url="https://a.test/", may_pass=True),
    SignerFailed("no signer"),
]


def named(value):
    return f"{value.__module__}.{value.__name__}" if isinstance(value, type) else type(value).__name__


def pickled(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 - its own


@pytest.mark.parametrize("base", BASES, ids=named)
@pytest.mark.parametrize("error", ERRORS, ids=named)
def test_an_error_keeps_its_kind_and_its_attributes(error: Exception, base: type[Exception]):
    try:
        # One client may pass through another, as in a store of the user's.
        with raised_as(base), raised_as(aiohttp.ClientError):
            raise error from KeyError("cause")
    except base as caught:
        raised = caught

    for same in (raised, pickled(raised), copy.copy(raised), copy.deepcopy(raised)):
        assert all(isinstance(same, kind) for kind in (type(error), base, aiohttp.ClientError))
        assert type(same).__qualname__ == type(error).__qualname__
        assert (str(same), repr(same)) == (str(error), repr(error))
        assert {name: str(getattr(same, name)) for name in vars(error)} == {
            name: str(value) for name, value in vars(error).items()
        }
    assert isinstance(raised.__cause__, KeyError)


@pytest.mark.parametrize("name", ALL)
async def test_clients_raise_their_own_base_error(name: str):
    rules = {"http://127.0.0.1:9/robots.txt": Reply(200, b"User-agent: *\nDisallow: /")}
    async with opened(name, HastyClock(), transports={"http": ScriptedTransport(rules)}) as client:
        with pytest.raises(client.failure) as raised:
            await client.get(URL)

    error = raised.value
    assert isinstance(error, polite.Disallowed)
    assert (error.url, error.decision.rule.line) == (URL, 2)
    if "aiohttp" not in name and "curl" not in name:
        assert str(error.request.url) == URL
