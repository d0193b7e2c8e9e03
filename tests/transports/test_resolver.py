"""Names to addresses: each way in which a nameserver fails has its reason, in the time that there is."""

import time

import pytest

from polite.robots.policy import FetchPolicy
from polite.robots.reason import Reason
from polite.transports.resolver import NameNotResolved, Resolver, reason_of, resolver_for
from tests.faults.names import AAAA, FORMERR, GARBAGE, NXDOMAIN, REFUSED, SERVFAIL, SILENCE, A, telling


async def failed(said: object, host: str = "site.test", *, timeout: float = 10.0) -> Reason:
    async with telling({"site.test": said}) as nameserver:
        resolver = resolver_for(FetchPolicy(timeout=timeout, nameservers=[nameserver]))
        try:
            with pytest.raises(NameNotResolved) as error:
                await resolver.resolve(host)
        finally:
            await resolver.close()
    return error.value.reason


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (NXDOMAIN, Reason.DNS_NXDOMAIN),
        (SERVFAIL, Reason.DNS_SERVFAIL),
        (REFUSED, Reason.DNS_REFUSED),
        (FORMERR, Reason.DNS_BAD_ANSWER),
        (GARBAGE, Reason.DNS_BAD_ANSWER),
        ((), Reason.DNS_NODATA),
    ],
)
async def test_a_nameservers_failure_has_its_reason(said: object, reason: Reason) -> None:
    assert await failed(said) is reason


async def test_an_empty_name_is_not_the_local_host() -> None:
    assert await failed((), host="") is Reason.DNS_FAILURE


async def test_a_silent_nameserver_is_given_up_before_the_fetch_is() -> None:
    started = time.monotonic()

    assert await failed(SILENCE, timeout=0.5) is Reason.DNS_TIMEOUT

    assert time.monotonic() - started < 5.0


async def test_all_addresses_of_both_kinds_are_found() -> None:
    names = {("site.test", A): ("127.0.0.1", "127.0.0.2"), ("site.test", AAAA): ("::1",)}

    async with telling(names) as nameserver:
        resolver = Resolver((nameserver,))
        found = await resolver.resolve("site.test", 80)
        await resolver.close()
        await resolver.close()

    assert {each["host"] for each in found} == {"127.0.0.1", "127.0.0.2", "::1"}
    assert {each["port"] for each in found} == {80}


async def test_addresses_come_with_the_time_for_which_they_are_good() -> None:
    names = {("site.test", A): ("127.0.0.1", "127.0.0.2"), ("site.test", AAAA): ("::1",)}

    async with telling(names) as nameserver:
        resolver = Resolver((nameserver,))
        found, good_s = await resolver.addresses("site.test")
        await resolver.close()

    assert set(found) == {"127.0.0.1", "127.0.0.2", "::1"}
    assert good_s == 60.0


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "refused"), Reason.CONNECTION_REFUSED),
        (OSError(113, "no route"), Reason.HOST_UNREACHABLE),
        (OSError(101, "network"), Reason.HOST_UNREACHABLE),
        (ConnectionResetError(104, "reset"), Reason.CONNECTION_LOST),
        (TimeoutError(), Reason.TIMEOUT),
        (OSError("several"), Reason.CONNECT_FAILED),
    ],
)
def test_an_operating_systems_error_has_its_reason(error: OSError, reason: Reason) -> None:
    assert reason_of(error) is reason
