"""What is known of an origin as time passes: freshness, failures, and the thirty days."""

import pytest

from polite.origin import Origin
from polite.robots.exchange import Exchange, Reply
from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable
from polite.robots.snapshot import renewed

URL = "https://example.com/robots.txt"
DAY = 86_400.0
POLICY = RobotsPolicy()
STRICT = RobotsPolicy(keep_stale=False)
FILE = Found(b"User-agent: *\nDisallow: /x", 200, URL)
MISSING = Unavailable(Reason.CLIENT_ERROR, URL, 404)
DOWN = Unreachable(Reason.SERVER_ERROR, URL, 500)
BUSY = Unreachable(Reason.SERVER_ERROR, URL, 503)


def after(*results, policy=POLICY, jitter=0.0):
    snapshot = None
    for access, now in results:
        snapshot = renewed(snapshot, access, policy, now, jitter=jitter)
    assert snapshot is not None
    return snapshot


def good_for(reply: Reply, policy: RobotsPolicy = POLICY) -> float:
    """How long a response stands, from the wire to the snapshot, behind a redirect that would be kept for long."""
    exchange = Exchange.begin(Origin.of(URL), policy)
    assert isinstance(exchange, Exchange)
    exchange = exchange.next(Reply(301, location="/there", cache_control="max-age=999"))
    assert isinstance(exchange, Exchange)
    access = exchange.next(reply)
    assert not isinstance(access, Exchange)
    return after((access, 0.0), policy=policy).expires_at


def test_k1_an_answer_is_good_for_24_hours_or_for_the_policys_time() -> None:
    snapshot = after((FILE, 100 * DAY))
    assert snapshot.fresh(101 * DAY - 1)
    assert not snapshot.fresh(101 * DAY)
    assert not snapshot.fresh(98 * DAY), "the clock was set far back"
    assert good_for(Reply(200), RobotsPolicy(default_ttl=3_600.0)) == 3_600.0


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize(
    ("cache_control", "age", "seconds"),
    [
        *((text, None, 3_600.0) for text in ("max-age=3600", 'max-age="3600"', " max-age =\t3600 ")),
        *((f"max-age={first}, max-age=3600", None, 3_600.0) for first in ("7200", "rubbish")),
        *((text, None, DAY) for text in (None, "max-age='3600'", "s-maxage=60", "max-age=" + "9" * 19)),
        *((text, None, 300.0) for text in ("max-age=299", "max-age=3600, NO-STORE")),
        *(("max-age=172800", None, 2 * DAY), ("max-age=604801", None, 7 * DAY)),
        *(
            ("max-age=3600", age, left_s)
            for age, left_s in (("600", 3e3), ("3600", 300.0), ("-600", 3_600.0))
        ),
    ],
)
def test_k2_cache_control_moves_that_within_the_policys_limits(status, cache_control, age, seconds):
    assert good_for(Reply(status, cache_control=cache_control, age=age)) == seconds
    # A failure lasts no longer by it.
    assert good_for(Reply(500, cache_control=cache_control, age=age)) == 5.0


def test_k3_a_failed_refresh_keeps_the_last_good_copy_unless_the_policy_forbids_it() -> None:
    assert after((FILE, 0.0), (DOWN, DAY)).effective(POLICY, DAY) == (FILE, Reason.OK)
    assert after((MISSING, 0.0), (DOWN, DAY)).effective(POLICY, DAY) == (MISSING, Reason.UNAVAILABLE)
    assert after((FILE, 0.0), (DOWN, DAY)).effective(STRICT, DAY) == (DOWN, Reason.UNREACHABLE)


def test_h5_without_a_copy_all_is_denied_for_30_days() -> None:
    late = 31 * DAY + 1
    assert after((DOWN, 0.0)).effective(POLICY, 29 * DAY) == (DOWN, Reason.UNREACHABLE)
    access, reason = after((DOWN, 0.0), (DOWN, late)).effective(POLICY, late)
    assert (type(access), reason) == (Unavailable, Reason.UNREACHABLE_TOO_LONG)
    assert after((FILE, 0.0), (DOWN, DAY)).effective(STRICT, late) == (FILE, Reason.UNREACHABLE_TOO_LONG)


def test_h6_the_thirty_days_count_from_the_first_failure_and_an_answer_ends_them() -> None:
    failures = [(DOWN, day * DAY) for day in range(20)]
    failed, answered = after(*failures), after(*failures, (MISSING, 20 * DAY))
    assert (failed.unreachable_since, failed.failures) == (0.0, 20)
    assert (answered.unreachable_since, answered.failures) == (None, 0)
    assert answered.effective(POLICY, 20 * DAY) == (MISSING, Reason.UNAVAILABLE)


def retry_delays(access: FetchResult, times: int) -> list[float]:
    delays, snapshot, now = [], None, 0.0
    for _ in range(times):
        snapshot = renewed(snapshot, access, POLICY, now)
        delays.append(snapshot.expires_at - now)
        now = snapshot.expires_at
    return delays


def test_h5_a_failure_is_asked_again_with_growing_delays_and_after_a_503_fairly_often() -> None:
    assert retry_delays(DOWN, 5) == [5, 10, 20, 40, 80]
    assert retry_delays(DOWN, 40)[-1] == POLICY.retry_max
    assert max(retry_delays(BUSY, 40)) == POLICY.busy_retry_max
    assert after((DOWN, 0.0), jitter=1.0).expires_at == 6.25


@pytest.mark.parametrize(("asked", "delay"), [(60.0, 60.0), (1.0, 5.0), (1e12, DAY)])
def test_retry_after_is_obeyed_within_limits(asked: float, delay: float) -> None:
    access = Unreachable(Reason.SERVER_ERROR, URL, 503, retry_after_s=asked)
    assert after((access, 0.0)).expires_at == delay
