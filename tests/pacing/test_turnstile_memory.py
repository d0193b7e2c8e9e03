"""Scopes that are idle are forgotten, and nothing that still delays a request is."""

from collections.abc import Hashable

from polite.pacing.turn import ScopeState, Turn, TurnState
from polite.pacing.turnstile import Turnstile
from tests.pacing.support import ALL, IP, A, B, finish


def pass_by(turnstile: Turnstile, now: float, requests: int, key: Hashable) -> None:
    """So many requests that come and go."""
    for _ in range(requests):
        finish(turnstile, turnstile.request((key,), now), now, 0.0)


def test_memory_falls_when_the_crawl_narrows_to_one_origin() -> None:
    turnstile = Turnstile()
    for at in range(1_000):
        finish(turnstile, turnstile.request((at, ("ip", at), ALL), 0.0), 0.0, 0.0)

    pass_by(turnstile, 100.0, 10_000, A)

    assert len(turnstile) <= 2


def test_a_back_off_is_never_forgotten_and_a_refusal_some_time_after_it() -> None:
    turnstile = Turnstile(strikes_kept_s=60.0)
    turn = turnstile.request((A,), 0.0)
    turnstile.settle(turn, 0.0, 10.0, strike=True)
    turnstile.release(turn, 0.0)

    pass_by(turnstile, 9.0, 1_000, B)
    assert turnstile.outlook((A,), 9.0).ready_at == 10.0
    pass_by(turnstile, 69.0, 1_000, B)
    assert turnstile.strikes(A) == 1
    pass_by(turnstile, 71.0, 1_000, B)

    assert turnstile.strikes(A) == 0
    assert len(turnstile) == 1


def test_a_scope_that_a_request_waits_for_is_not_forgotten() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 100.0)
    finish(turnstile, turnstile.request((IP,), 0.0), 0.0, 0.0)
    both = turnstile.request((A, IP), 0.0)
    pass_by(turnstile, 50.0, 1_000, B)
    other = turnstile.request((IP,), 100.0)

    assert turnstile.due(100.0) == []
    turnstile.cancel(other, 100.0)
    assert turnstile.due(100.0) == [both]


def test_forgetting_keeps_up_with_requests_of_several_new_scopes() -> None:
    turnstile = Turnstile()
    for at in range(5_000):
        now = float(at)
        finish(turnstile, turnstile.request((at, ("domain", at), ("ip", at)), now), now, 10.0)

    assert len(turnstile) < 500


def test_a_queue_keeps_no_more_cancelled_turns_than_waiting_ones() -> None:
    scope = ScopeState("a.example", 1, 1.0)
    turns = [Turn((scope,), order, (scope,)) for order in range(1_000)]
    for turn in turns:
        scope.join(turn)

    for turn in turns[:0:-1]:
        turn.state = TurnState.CANCELLED
        scope.quit()
        assert len(scope.queue or ()) <= 2 * scope.waiting

    assert scope.queue is None
    assert scope.front is turns[0]
