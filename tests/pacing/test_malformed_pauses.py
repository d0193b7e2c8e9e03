"""A user's throttle may return anything: no error reaches the crawl, and no request goes before the policy's own delay."""

from decimal import Decimal
from types import SimpleNamespace

import pytest

from polite.errors import InvalidOption
from polite.origin import Origin
from polite.pace import RequestedPace
from polite.pacing.effective_policy import EffectivePolicies, require_throttle
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.policy import PacingPolicy
from polite.pacing.throttle import Jittered, Longest, MinDelay, Throttle

GIVEN = ThrottleContext(None, 0, 0.0)
WELL = Outcome(200)
ORIGIN = Origin.of("https://site.test")


class Raising:
    @property
    def seconds(self) -> float:
        raise ZeroDivisionError

    def __repr__(self) -> str:
        raise ZeroDivisionError

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        raise ZeroDivisionError


class Odd:
    def __init__(self, answer):
        self.answer = answer

    def rest(self, outcome, given):
        return self.answer


QUICK: tuple[Throttle, ...] = (Odd(Pause(0.0, "quick")), Jittered(Longest(MinDelay(0.0)), 0.5))


def rest(answer, outcome=WELL):
    policy = PacingPolicy(min_delay=2.0, backoff=10.0)
    return EffectivePolicies(policy, Odd(answer)).of(ORIGIN).rest(outcome, GIVEN)


@pytest.mark.parametrize(
    ("answer", "least_s"),
    [
        (Pause(Decimal(7), "decimal"), 7.0),  # type: ignore[arg-type]
        (Pause("0.5", "less than the policy's own"), 2.0),  # type: ignore[arg-type]
        (Pause(float("nan"), ""), 2.0),
        (Pause(-1.0, ""), 2.0),
        (Pause(3.0, None), 3.0),  # type: ignore[arg-type]
        (SimpleNamespace(seconds=20.0, because="no strike"), 20.0),
        (SimpleNamespace(seconds=10**400, because="", strike=False), 2.0),
        (20.0, 2.0),
        (None, 2.0),
        (Raising(), 2.0),
    ],
)
def test_what_is_no_pause_is_the_policys_own_and_never_shorter(answer, least_s):
    pause = rest(answer)
    assert (type(pause), pause.seconds, pause.strike) == (Pause, least_s, False)
    assert "the throttle" in pause.because


@pytest.mark.parametrize("throttle", QUICK, ids=lambda throttle: type(throttle).__name__)
@pytest.mark.parametrize(
    ("outcome", "pace", "least_s", "strike"),
    [
        (WELL, RequestedPace(crawl_delay=30.0), 30.0, False),
        (Outcome(503), None, 10.0, True),
        (Outcome(failed=True), None, 2.0, False),
    ],
)
def test_no_throttle_is_quicker_than_the_policy(throttle, outcome, pace, least_s, strike):
    policies = EffectivePolicies(PacingPolicy(min_delay=2.0, backoff=10.0), throttle)
    pause = policies.of(ORIGIN).rest(outcome, ThrottleContext(pace, 0, 0.0))
    assert pause.seconds >= least_s
    assert pause.strike is strike
    assert "is shorter" in pause.because


def test_a_policy_may_let_the_throttle_undercut_one_site() -> None:
    policies = EffectivePolicies(PacingPolicy().override(ORIGIN, may_undercut_site=True), QUICK[0])

    own = policies.of(ORIGIN).rest(Outcome(429, retry_after_s=60.0), GIVEN)
    other = policies.of(Origin.of("https://other.test")).rest(WELL, GIVEN)

    # Its delay counts, and the refusal is still a refusal.
    assert own == Pause(0.0, "quick", strike=True)
    assert other.seconds == 1.0
    # Neither does a slower one hide it.
    assert rest(Pause(80.0, "slow"), Outcome(429)) == Pause(80.0, "slow", strike=True)


def test_a_permission_to_undercut_needs_a_throttle() -> None:
    policies = EffectivePolicies(PacingPolicy())

    for policy in (
        PacingPolicy(may_undercut_site=True),
        PacingPolicy().override(ORIGIN, may_undercut_site=True),
    ):
        with pytest.raises(InvalidOption, match=r"may_undercut_site needs open_gate\(throttle=\.\.\.\)"):
            EffectivePolicies(policy)
        with pytest.raises(InvalidOption, match="may_undercut_site"):
            policies.replace(policy)
    assert policies.policy == PacingPolicy()


class Forbidden:
    """A part, which is no throttle."""

    def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause | None:
        return Pause(600.0, "status 403") if outcome.status == 403 else None


class Awaited:
    async def rest(self, outcome: Outcome, given: ThrottleContext) -> Pause:
        return Pause(1.0, "")


@pytest.mark.parametrize(
    ("throttle", "named"),
    [
        (Forbidden(), "Forbidden"),
        (Jittered(Forbidden(), 0.1), "Forbidden"),  # type: ignore[arg-type]
        (Longest(MinDelay(1.0), Odd(20.0)), "Odd"),
        (Odd(Pause(float("nan"), "")), "Odd"),
        (Raising(), "Raising"),
        (MinDelay, "MinDelay"),
        (Awaited(), "Awaited"),
        (lambda outcome, given: Pause(1.0, ""), "lambda"),
    ],
)
def test_what_is_no_throttle_is_refused_when_the_gate_opens(throttle, named):
    with pytest.raises(InvalidOption, match=f"throttle.*{named}"):
        require_throttle(throttle)
    if named in {"MinDelay", "Awaited", "lambda"}:
        with pytest.raises(InvalidOption, match="Longest: each part must be"):
            Longest(MinDelay(1.0), throttle)
        with pytest.raises(InvalidOption, match="Jittered: throttle must be"):
            Jittered(throttle, 0.5)


def test_a_part_that_fails_later_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    odd = Odd(None)
    throttle = Longest(MinDelay(5.0), odd)
    require_throttle(throttle)
    policies = EffectivePolicies(PacingPolicy(min_delay=2.0), throttle)

    odd.answer = 20.0
    assert policies.of(ORIGIN).rest(Outcome(200), GIVEN).seconds == 2.0
    assert "Odd.rest must return a Pause or None, got 20.0" in caplog.text
    assert caplog.records[0].levelname == "ERROR"
