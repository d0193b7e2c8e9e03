"""What delays the next turn of a scope: settling, releasing, concurrency, refusals and holds; time is an argument."""

import math

import pytest

from polite.errors import InvalidOption
from polite.pacing.turn import TurnState
from polite.pacing.turnstile import Turnstile
from tests.pacing.support import ALL, IP, A, B, C, finish


def test_with_concurrency_a_grant_starts_a_delay_of_its_own() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.5)
    turnstile.request((A,), 10.0)
    second = turnstile.request((A,), 10.0)
    third = turnstile.request((A,), 10.0)

    assert turnstile.due(11.4) == []
    assert turnstile.due(11.5) == [second]
    assert turnstile.due(100.0) == []
    assert third.state is TurnState.WAITING


def test_a_request_may_ask_for_a_longer_delay_at_its_narrowest_scope_and_never_for_a_shorter() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.0)

    turnstile.request((A, IP), 0.0, provisional_s=5.0)
    turnstile.request((B,), 0.0, provisional_s=0.5)

    assert [turnstile.outlook((key,), 0.0).ready_at for key in (A, IP, B)] == [5.0, 1.0, 1.0]


def test_with_concurrency_a_turn_that_becomes_free_goes_to_the_next() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=0.0)
    first, _ = turnstile.request((A,), 0.0), turnstile.request((A,), 0.0)
    third = turnstile.request((A,), 0.0)

    finish(turnstile, first, 1.0, 0.0)

    assert turnstile.due(1.0) == [third]


def test_concurrency_may_differ_from_scope_to_scope() -> None:
    turnstile = Turnstile(concurrency=lambda scope: 3 if scope == ALL else 1, provisional_s=0.0)

    states = [turnstile.request((key, ALL), 0.0).state for key in (A, B, C, "d.example")]

    assert states == [TurnState.OPEN] * 3 + [TurnState.WAITING]


def test_settling_only_lengthens() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)

    turnstile.settle(turn, 0.0, 10.0, because="long")
    turnstile.settle(turn, 0.0, 2.0, because="short")
    turnstile.release(turn, 0.0)

    outlook = turnstile.outlook((A,), 1.0)
    assert (outlook.ready_at, outlook.because) == (10.0, "long")


def test_each_scope_may_have_its_own_delay() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A, IP, ALL), 0.0)

    turnstile.settle(turn, 0.0, {A: 5.0, IP: 1.0})
    turnstile.release(turn, 0.0)

    assert [turnstile.outlook((key,), 0.0).ready_at for key in (A, IP, ALL)] == [5.0, 1.0, 0.0]


@pytest.mark.parametrize("pause_s", [-1.0, math.nan, math.inf])
def test_a_delay_that_is_no_time_is_an_error(pause_s: float) -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)

    for given in (pause_s, {A: pause_s}):
        with pytest.raises(ValueError, match="finite"):
            turnstile.settle(turn, 0.0, given)

    assert not turn.settled


def test_a_turn_released_without_settling_delays_all_the_same() -> None:
    turnstile = Turnstile(provisional_s=4.0)
    turn = turnstile.request((A,), 0.0)

    turnstile.release(turn, 10.0)

    assert turn.settled
    assert turnstile.outlook((A,), 10.0).ready_at == 14.0


def test_releasing_again_does_nothing() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)
    finish(turnstile, turn, 0.0, 0.0)
    turnstile.request((A,), 0.0)

    turnstile.release(turn, 0.0)
    turnstile.cancel(turn, 0.0)

    assert turn.state is TurnState.RELEASED
    assert turnstile.request((A,), 0.0).state is TurnState.WAITING


def test_a_released_turn_may_be_settled_still() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)
    finish(turnstile, turn, 0.0)

    turnstile.settle(turn, 5.0, 100.0, strike=True)

    assert turnstile.outlook((A,), 5.0).ready_at == 105.0
    assert turnstile.strikes(A) == 1


def test_a_released_turn_settles_a_scope_that_was_forgotten_since() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)
    finish(turnstile, turn, 0.0)
    for at in range(200):
        finish(turnstile, turnstile.request((at,), 10.0), 10.0, 1000.0)
    assert turnstile.outlook((A,), 10.0).scope is None

    turnstile.settle(turn, 20.0, 100.0)

    assert turnstile.request((A,), 20.0).state is TurnState.WAITING


def test_a_turn_given_back_leaves_no_delay() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)
    other = turnstile.request((A,), 0.0)

    turnstile.cancel(turn, 0.0)

    assert turn.state is TurnState.CANCELLED
    assert turnstile.due(0.0) == [other]


def test_a_turn_given_back_keeps_the_row_of_refusals() -> None:
    turnstile = Turnstile()
    refused = turnstile.request((A,), 0.0)
    turnstile.settle(refused, 0.0, 1.0, strike=True)
    turnstile.release(refused, 0.0)

    turnstile.cancel(turnstile.request((A,), 2.0), 2.0)

    assert turnstile.strikes(A) == 1


def test_refusals_are_counted_and_each_good_answer_halves_the_count() -> None:
    turnstile = Turnstile()
    counts = []

    for now, strike in enumerate((True, True, True, True, False, True, False, False, False)):
        turn = turnstile.request((A, IP), float(now))
        turnstile.settle(turn, now, 0.0, strike=strike)
        turnstile.release(turn, now)
        counts.append((turnstile.strikes(A), turnstile.strikes(IP)))

    assert counts == [(n, n) for n in (1, 2, 3, 4, 2, 3, 1, 0, 0)]
    assert turnstile.strikes("unknown") == 0


def test_what_says_nothing_about_the_server_forgives_nothing() -> None:
    turnstile = Turnstile()
    for now, (strike, forgive) in enumerate([(True, True), (False, False)]):
        turn = turnstile.request((A,), float(now))
        turnstile.settle(turn, now, 0.0, strike=strike, forgive=forgive)
        turnstile.release(turn, now)

    never_settled = turnstile.request((A,), 5.0)
    turnstile.release(never_settled, 5.0)

    assert turnstile.strikes(A) == 1


def test_a_function_may_give_the_delay_of_each_scope() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s={A: 3.0, IP: 1.0}.__getitem__)
    turnstile.request((A, IP), 0.0)

    assert turnstile.outlook((A,), 0.0).ready_at == 3.0
    assert turnstile.outlook((IP,), 0.0).ready_at == 1.0


def test_a_turn_never_settled_delays_each_scope_for_its_own_time() -> None:
    turnstile = Turnstile(provisional_s={A: 3.0, IP: 1.0}.__getitem__)
    turnstile.release(turnstile.request((A, IP), 0.0, provisional_s=7.0), 0.0)

    assert turnstile.outlook((A,), 0.0).ready_at == 7.0
    assert turnstile.outlook((IP,), 0.0).ready_at == 1.0


def test_an_invalid_delay_is_named_when_its_scope_is_added() -> None:
    turnstile = Turnstile(provisional_s=lambda _: math.inf)

    with pytest.raises(InvalidOption, match="the delay of 'a.*got inf"):
        turnstile.request((A,), 0.0)


def test_settling_again_counts_a_refusal_once_and_ends_no_row() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)

    turnstile.settle(turn, 0.0, 0.0, strike=True)
    turnstile.settle(turn, 0.0, 0.0, strike=True)
    turnstile.settle(turn, 0.0, 0.0)

    assert turnstile.strikes(A) == 1


def test_a_hold_moves_the_next_turn_later_and_never_sooner() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 50.0, "the site asked")
    turnstile.hold(A, 20.0, "something else")

    turn = turnstile.request((A,), 30.0)

    outlook = turnstile.outlook((A,), 30.0)
    assert (outlook.ready_at, outlook.waiting, outlook.because) == (50.0, 1, "the site asked")
    assert turnstile.due(49.0) == []
    assert turnstile.due(50.0) == [turn]


def test_a_hold_reaches_those_that_wait_already() -> None:
    turnstile = Turnstile()
    finish(turnstile, turnstile.request((A,), 0.0), 0.0, 1.0)
    turn = turnstile.request((A,), 0.0)

    turnstile.hold(A, 9.0)

    assert turnstile.due(8.9) == []
    assert turnstile.due(9.0) == [turn]


@pytest.mark.parametrize("until", [math.nan, math.inf, -math.inf])
def test_a_hold_until_no_time_is_an_error(until: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Turnstile().hold(A, until)


@pytest.mark.parametrize("strike", [True, False])
@pytest.mark.parametrize("scopes", [(A,), (A, IP)])
def test_an_open_turn_that_asks_again_keeps_the_back_off_of_another(
    scopes: tuple[str, ...], strike: bool
) -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.0)
    refused, slow = turnstile.request(scopes, 0.0), turnstile.request(scopes, 0.0)
    assert turnstile.due(1.0) == [slow]

    turnstile.settle(refused, 2.0, {A: 60.0}, strike=strike)
    turnstile.settle(refused, 3.0, 1.0)

    assert turnstile.ask_again(slow, 3.0) == 59.0
    assert turnstile.ask_again(slow, 62.0) == 0.0


def test_an_open_turn_that_asks_again_does_not_wait_for_an_ordinary_response() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.0)
    first, slow = turnstile.request((A,), 0.0), turnstile.request((A,), 0.0)
    turnstile.due(1.0)

    turnstile.settle(first, 2.5, 1.0)

    assert turnstile.ask_again(slow, 3.0) == 0.0
