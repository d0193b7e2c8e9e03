"""What a fault leaves behind: how soon the origin is asked again, what the copy is worth, and what an alarm says."""

import pytest

import polite
from polite.events import Event, RobotsFetched
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import Found, Unreachable
from polite.robots.snapshot import Snapshot, renewed
from polite.testing import scripted_server
from tests.faults.names import telling
from tests.faults.stage import answered, moved, ok

URL = "https://site.test/robots.txt"
GOOD = Found(b"User-agent: *", 200, URL)


def failed(reason: Reason, *, status: int | None = None, before: Snapshot | None = None) -> Snapshot:
    return renewed(before, Unreachable(reason, URL, status), RobotsPolicy(), 1_000.0)


def test_a_name_that_does_not_exist_is_asked_for_again_later_and_a_304_renews_a_copy() -> None:
    after = failed(Reason.ODD_STATUS, status=304, before=renewed(None, GOOD, RobotsPolicy(), 0.0))
    without = failed(Reason.ODD_STATUS, status=304, before=failed(Reason.TIMEOUT))
    assert failed(Reason.DNS_NXDOMAIN).expires_at == 1_600.0
    assert failed(Reason.DNS_SERVFAIL).expires_at == 1_005.0
    assert (after.access, after.failures, after.expires_at) == (GOOD, 0, 1_000.0 + 86_400.0)
    assert without.failures == 2


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        (b"77", 77.0),
        *((value, 86_400.0) for value in (b"Fri, 31 Dec 2999 23:59:59 GMT", b"9" * 40)),
        *((value, 5.0) for value in (b"soon", b"-5", b"\xff\xfe", b"1e999")),
    ],
)
async def test_retry_after_is_obeyed_within_limits_and_never_believed(value: bytes, wait_s: float) -> None:
    busy = answered(b"503 Service Unavailable", b"Retry-After: " + value)

    async with (
        scripted_server(busy) as server,
        polite.open_gate("FaultBot/1.0", fetching=polite.FetchPolicy(allow_private=True)) as gate,
    ):
        explanation = await gate.explain(server.url("/"))

    left = explanation.snapshot.expires_at - explanation.snapshot.fetched_at
    assert wait_s <= left <= wait_s * 1.25


async def test_an_alarm_reaches_the_listener_with_its_reason() -> None:
    events: list[Event] = []
    fetching = polite.FetchPolicy(allowed_networks=["127.0.0.0/8"])

    async with (
        scripted_server(moved(b"http://169.254.169.254/")) as server,
        polite.open_gate("FaultBot/1.0", fetching=fetching, listener=events.append) as gate,
    ):
        await gate.check(server.url("/"))

    (event,) = [event for event in events if isinstance(event, RobotsFetched)]
    assert Reason[event.reason].hostile
    assert event.hops == 1


async def test_cookies_are_never_kept() -> None:
    # By name: aiohttp's own jar keeps none of an address.
    there = {"site.test": ("127.0.0.1",)}
    async with (
        scripted_server(moved(b"/there", b"Set-Cookie: track=1"), ok()) as server,
        telling(there) as nameserver,
        polite.open_gate(
            "FaultBot/1.0",
            pacing=polite.PacingPolicy(min_delay=0),
            fetching=polite.FetchPolicy(allow_private=True, nameservers=[nameserver]),
        ) as gate,
    ):
        await gate.check(server.url("/", host="site.test"))

    assert len(server.requests) == 2
    assert b"track" not in b"".join(server.requests)
