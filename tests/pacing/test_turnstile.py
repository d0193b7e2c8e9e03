"""The order of turns at one scope and at several, cancellation, and misuse; time is an argument."""

import math
import time
from typing import Any

import pytest

from polite.errors import InvalidOption, Overloaded
from polite.pacing.turn import TurnState
from polite.pacing.turnstile import Turnstile
from tests.pacing.support import ALL, IP, A, B, C, finish


def test_urgent_turns_go_first_and_in_their_own_order() -> None:
    turnstile = Turnstile()
    opened = turnstile.request((A,), 0.0)
    late, soon, sooner = (turnstile.request((A,), 0.0, urgent=urgent) for urgent in (False, True, True))
    finish(turnstile, opened, 0.0, 0.0)

    given = []
    for _ in range(3):
        given += turnstile.due(0.0)
        finish(turnstile, given[-1], 0.0, 0.0)

    assert given == [soon, sooner, late]


def test_a_turn_goes_back_when_an_earlier_scope_became_busy_and_blocks_no_other() -> None:
    turnstile = Turnstile()
    running = turnstile.request((ALL,), 0.0)
    back, other = turnstile.request((A, IP, ALL), 0.0), turnstile.request((B, IP, ALL), 0.0)
    turnstile.hold(A, 100.0)

    finish(turnstile, running, 1.0, 0.0)

    assert turnstile.due(1.0) == [other]
    finish(turnstile, other, 1.0, 0.0)
    assert turnstile.due(99.9) == []
    assert turnstile.due(100.0) == [back]


def test_an_older_turn_goes_first_at_a_broad_scope_it_reaches_later() -> None:
    turnstile = Turnstile()
    running = turnstile.request((ALL,), 0.0)
    turnstile.hold(A, 1.0)
    older, younger = turnstile.request((A, ALL), 0.0), turnstile.request((B, ALL), 0.0)
    youngest = turnstile.request((C, ALL), 0.0)
    assert turnstile.due(2.0) == []

    finish(turnstile, running, 2.0, 0.0)
    (first,) = turnstile.due(2.0)
    finish(turnstile, first, 2.0, 0.0)

    assert first is older
    assert turnstile.due(2.0) == [younger]
    assert youngest.state is TurnState.WAITING


def test_a_circle_too_long_to_be_followed_is_broken_too() -> None:
    turnstile = Turnstile()
    size = 40
    for scope in range(size):
        turnstile.hold(scope, float(scope))
    circle = [turnstile.request((scope, (scope + 1) % size), -1.0) for scope in reversed(range(size))]

    for now in range(2 * size):
        for turn in turnstile.due(float(now)):
            finish(turnstile, turn, float(now), 0.0)

    assert {turn.state for turn in circle} == {TurnState.RELEASED}


@pytest.mark.parametrize("backwards", [False, True])
def test_cancelling_a_hundred_thousand_takes_no_more_than_a_moment(backwards: bool) -> None:
    turnstile = Turnstile()
    turnstile.request((A,), 0.0)
    waiting = [turnstile.request((A,), 0.0) for _ in range(100_000)]

    start = time.process_time()
    for turn in reversed(waiting) if backwards else waiting:
        turnstile.cancel(turn, 0.0)

    assert time.process_time() - start < 2.0
    assert turnstile.waiting == 0


def test_too_many_waiters_are_refused_by_the_name_of_the_option() -> None:
    turnstile = Turnstile(max_waiting=1)
    turnstile.request((A,), 0.0)
    turnstile.request((A,), 0.0)

    with pytest.raises(Overloaded, match=r"PacingPolicy\.max_waiting=1 .*a\.example"):
        turnstile.request((A,), 0.0)

    assert turnstile.waiting == 1
    assert turnstile.request((B,), 0.0).state is TurnState.OPEN


@pytest.mark.parametrize(
    ("name", "value"),
    [("concurrency", 0), ("max_waiting", 0), ("provisional_s", math.nan), ("strikes_kept_s", math.inf)],
)
def test_an_option_without_meaning_is_named(name: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=name):
        Turnstile(**{name: value})


def test_a_scope_named_twice_is_taken_once_and_one_is_needed() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A, A), 0.0)
    finish(turnstile, turn, 0.0, 0.0)

    assert turn.scopes == (A,)
    assert turnstile.request((A,), 0.0).state is TurnState.OPEN
    with pytest.raises(ValueError, match="at least one scope"):
        turnstile.request((), 0.0)
