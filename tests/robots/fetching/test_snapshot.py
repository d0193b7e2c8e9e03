"""What is known of an origin as time passes: freshness, failures, and the thirty days."""

import pytest

from polite.robots.policy import RobotsPolicy
from polite.robots.reason import Reason
from polite.robots.result import FetchResult, Found, Unavailable, Unreachable
from polite.robots.snapshot import Snapshot, renewed

URL = "https://example.com/robots.txt"
DAY = 86_400.0
POLICY = RobotsPolicy()
FILE = Found(b"User-agent: *\nDisallow: /x", 200, URL)
MISSING = Unavailable(Reason.CLIENT_ERROR, URL, 404)
DOWN = Unreachable(Reason.SERVER_ERROR, URL, 500)
BUSY = Unreachable(Reason.SERVER_ERROR, URL, 503)


def test_k1_an_answer_is_good_for_24_hours() -> None:
    snapshot = renewed(None, FILE, POLICY, now=0.0)

    assert snapshot.fresh(DAY - 1)
    assert not snapshot.fresh(DAY)


@pytest.mark.parametrize(
    ("max_age", "good_for"), [(3_600.0, 3_600.0), (2 * DAY, 2 * DAY), (0.0, 300.0), (1e9, 7 * DAY)]
)
def test_k2_max_age_moves_that_within_the_policys_limits(max_age: float, good_for: float) -> None:
    snapshot = renewed(None, Found(b"", 200, URL, max_age_s=max_age), POLICY, now=0.0)

    assert snapshot.expires_at == good_for


def test_a_clock_set_far_back_makes_an_answer_old() -> None:
    snapshot = renewed(None, FILE, POLICY, now=100 * DAY)

    assert snapshot.fresh(100 * DAY - 5)
    assert not snapshot.fresh(98 * DAY)


def test_k3_a_failed_refresh_keeps_the_last_good_copy() -> None:
    snapshot = renewed(renewed(None, FILE, POLICY, now=0.0), DOWN, POLICY, now=DAY)

    assert snapshot.effective(POLICY, DAY) == (FILE, Reason.OK)


def test_without_keep_stale_all_is_denied_meanwhile() -> None:
    policy = RobotsPolicy(keep_stale=False)

    snapshot = renewed(renewed(None, FILE, policy, now=0.0), DOWN, policy, now=DAY)

    assert snapshot.effective(policy, DAY) == (DOWN, Reason.UNREACHABLE)


def test_h5_without_a_copy_all_is_denied() -> None:
    snapshot = renewed(None, DOWN, POLICY, now=0.0)

    assert snapshot.effective(POLICY, 29 * DAY) == (DOWN, Reason.UNREACHABLE)


def test_h6_after_30_days_without_a_copy_all_is_allowed() -> None:
    snapshot = renewed(renewed(None, DOWN, POLICY, now=0.0), DOWN, POLICY, now=30 * DAY + 1)

    access, reason = snapshot.effective(POLICY, 30 * DAY + 1)

    assert isinstance(access, Unavailable)
    assert reason is Reason.UNREACHABLE_TOO_LONG


def test_h6_after_30_days_the_last_copy_decides_even_without_keep_stale() -> None:
    policy = RobotsPolicy(keep_stale=False)
    snapshot = renewed(renewed(None, FILE, policy, now=0.0), DOWN, policy, now=DAY)

    assert snapshot.effective(policy, 31 * DAY + 1) == (FILE, Reason.UNREACHABLE_TOO_LONG)


def test_the_thirty_days_count_from_the_first_failure() -> None:
    snapshot: Snapshot | None = None
    for day in range(20):
        snapshot = renewed(snapshot, DOWN, POLICY, now=day * DAY)

    assert snapshot is not None
    assert snapshot.unreachable_since == 0.0
    assert snapshot.failures == 20


def test_an_answer_ends_the_failures() -> None:
    snapshot = renewed(renewed(None, DOWN, POLICY, now=0.0), MISSING, POLICY, now=60.0)

    assert (snapshot.failures, snapshot.unreachable_since) == (0, None)
    assert snapshot.effective(POLICY, 60.0) == (MISSING, Reason.UNAVAILABLE)


def retry_delays(access: FetchResult, times: int, jitter: float = 0.0) -> list[float]:
    delays, snapshot, now = [], None, 0.0
    for _ in range(times):
        snapshot = renewed(snapshot, access, POLICY, now, jitter=jitter)
        delays.append(snapshot.expires_at - now)
        now = snapshot.expires_at
    return delays


def test_h5_a_failure_is_asked_again_with_growing_delays() -> None:
    assert retry_delays(DOWN, 5) == [5, 10, 20, 40, 80]
    assert retry_delays(DOWN, 40)[-1] == POLICY.retry_max


def test_h5_a_503_is_asked_again_fairly_often() -> None:
    assert max(retry_delays(BUSY, 40)) == POLICY.busy_retry_max


@pytest.mark.parametrize(("asked", "delay"), [(60.0, 60.0), (1.0, 5.0), (1e12, DAY)])
def test_retry_after_is_obeyed_within_limits(asked: float, delay: float) -> None:
    access = Unreachable(Reason.SERVER_ERROR, URL, 503, retry_after_s=asked)

    assert renewed(None, access, POLICY, now=0.0).expires_at == delay
