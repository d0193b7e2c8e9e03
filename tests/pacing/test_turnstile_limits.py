"""Limits of scopes that change while turns are in flight: each scope is told once, in small steps, and no delay is lost."""

from polite.pacing.turn import TurnState
from polite.pacing.turnstile import Turnstile
from tests.pacing.support import A, B


def test_more_may_go_at_one_time_from_now_and_not_before_the_delay_that_a_grant_would_have_started() -> None:
    limits, rests = {A: 1, B: 1}, {A: 2.0, B: 2.0}
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=rests.__getitem__)
    for scope, asked_s in ((A, None), (B, 9.0)):
        turnstile.request((scope,), 0.0, provisional_s=asked_s)
    waiting = [turnstile.request((scope,), 0.0) for scope in (A, B)]

    limits.update(dict.fromkeys(limits, 2))
    turnstile.relimit(1.0)

    assert turnstile.due(2.9) == []
    assert turnstile.due(3.0) == waiting[:1]
    assert turnstile.due(9.9) == []
    assert turnstile.due(10.0) == waiting[1:]


def test_a_scope_that_was_not_told_yet_is_delayed_no_less_than_is_asked_now() -> None:
    rests = {A: 1.0}
    turnstile = Turnstile(concurrency=2, provisional_s=rests.__getitem__)
    unsettled = turnstile.request((A,), 0.0)

    rests[A] = 50.0
    turnstile.outdate()
    turnstile.release(unsettled, 2.0)

    assert turnstile.outlook((A,), 2.0).ready_at == 52.0


def test_a_turn_given_back_before_its_scope_was_told_delays_it_as_one_in_flight_does() -> None:
    limits = {A: 1}
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=9.0)
    turn = turnstile.request((A,), 0.0)

    limits[A] = 2
    turnstile.outdate()
    turnstile.cancel(turn, 1.0)

    assert turnstile.outlook((A,), 1.0).ready_at == 10.0


def test_limits_that_change_while_scopes_are_told_are_told_to_all() -> None:
    limits = dict.fromkeys(range(10), 1)
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=0.0)
    held = [turnstile.request((scope,), 0.0) for scope in range(10)]
    waiting = [turnstile.request((scope,), 0.0) for scope in range(10)]

    for limit in (1, 2):
        limits.update(dict.fromkeys(limits, limit))
        turnstile.outdate()
        turnstile.renew(1.0, 4)
    while turnstile.renew(1.0, 4):
        pass

    assert {turn.scopes for turn in turnstile.due(1.0)} == {turn.scopes for turn in waiting}
    assert len(held) == len(waiting)


def test_a_scope_whose_limit_cannot_be_worked_out_any_more_has_one_turn_at_a_time() -> None:
    limits = {A: 3, B: 3}
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=0.0)
    turns = [turnstile.request((scope,), 0.0) for scope in (A, B)]

    limits.clear()
    turnstile.outdate()

    assert turnstile.request((A,), 1.0).state is TurnState.WAITING
    assert not turnstile.renew(1.0, 10)
    assert turnstile.request((B,), 1.0).state is TurnState.WAITING
    assert len(turns) == 2
