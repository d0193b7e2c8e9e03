"""A user's throttle may return anything: no error reaches the crawl, and no request goes too early."""

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from polite.origin import Origin
from polite.pacing.effective_policy import EffectivePolicies
from polite.pacing.outcome import Outcome, Pause, ThrottleContext
from polite.pacing.policy import PacingPolicy

GIVEN = ThrottleContext(None, 0, 0.0)
WELL = Outcome(200)
ORIGIN = Origin.of("https://site.test")


class Twin(NamedTuple):
    seconds: float
    because: str
    strike: bool


class Raising:
    @property
    def seconds(self) -> float:
        raise ZeroDivisionError

    def __repr__(self) -> str:
        raise ZeroDivisionError


def rest(answer: Any, outcome: Outcome = WELL) -> Pause:
    class Odd:
        def rest(self, outcome: Outcome, given: ThrottleContext) -> Any:
            return answer

    return EffectivePolicies(PacingPolicy(min_delay=2.0, backoff=10.0), Odd()).of(ORIGIN).rest(outcome, GIVEN)


@pytest.mark.parametrize(
    ("answer", "least_s"),
    [
        (Pause("5", "text"), 5.0),  # type: ignore[arg-type]
        (Pause(Decimal(7), "decimal"), 7.0),  # type: ignore[arg-type]
        (Pause(Decimal("0.5"), "less than the policy's own"), 2.0),  # type: ignore[arg-type]
        (Pause(float("nan"), ""), 2.0),
        (Pause(float("inf"), ""), 2.0),
        (Pause(-1.0, ""), 2.0),
        (Pause(3.0, None), 3.0),  # type: ignore[arg-type]
        (Pause(3.0, "", None), 3.0),  # type: ignore[arg-type]
        (SimpleNamespace(seconds=20.0, because="no strike"), 20.0),
        (SimpleNamespace(because="no seconds"), 2.0),
        (SimpleNamespace(seconds=10**400, because="", strike=False), 2.0),
        (20.0, 2.0),
        (None, 2.0),
        (Raising(), 2.0),
    ],
)
def test_what_is_no_pause_is_the_policys_own_and_never_shorter(answer: Any, least_s: float) -> None:
    pause = rest(answer)

    assert (type(pause), pause.seconds, pause.strike) == (Pause, least_s, False)
    assert "the throttle" in pause.because


def test_a_malformed_answer_to_a_refusal_is_a_strike_and_a_back_off() -> None:
    pause = rest(SimpleNamespace(seconds="x", because="no number"), Outcome(429))

    assert pause.strike
    assert pause.seconds >= 10.0


def test_what_can_stand_for_a_pause_is_taken_as_it_is() -> None:
    assert rest(Twin(4, "a named tuple", True)) == (4, "a named tuple", True)
