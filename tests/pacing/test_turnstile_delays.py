"""What delays the next turn of a scope: settling, releasing, concurrency, refusals and holds; time is an argument."""

import math

import pytest

from polite.errors import InvalidOption
from polite.pacing.turn import TurnState
from polite.pacing.turnstile import Turnstile
from tests.pacing.support import ALL, IP, A, B, finish


def test_a_request_may_ask_for_a_longer_delay_at_its_narrowest_scope_and_never_for_a_shorter() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.0)

    turnstile.request((A, IP), 0.0, provisional_s=5.0)
    turnstile.request((B,), 0.0, provisional_s=0.5)

    assert [turnstile.outlook((key,), 0.0).ready_at for key in (A, IP, B)] == [5.0, 1.0, 1.0]


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


def test_what_says_nothing_about_the_server_forgives_nothing() -> None:
    turnstile = Turnstile()
    for now, (strike, forgive) in enumerate([(True, True), (False, False)]):
        turn = turnstile.request((A,), float(now))
        turnstile.settle(turn, now, 0.0, strike=strike, forgive=forgive)
        turnstile.release(turn, now)

    never_settled = turnstile.request((A,), 5.0)
    turnstile.release(never_settled, 5.0)

    assert turnstile.strikes(A) == 1


def test_a_turn_never_settled_delays_each_scope_for_its_own_time() -> None:
    turnstile = Turnstile(provisional_s={A: 3.0, IP: 1.0}.__getitem__)
    turnstile.release(turnstile.request((A, IP), 0.0, provisional_s=7.0), 0.0)

    assert turnstile.outlook((A,), 0.0).ready_at == 7.0
    assert turnstile.outlook((IP,), 0.0).ready_at == 1.0


def test_an_invalid_delay_is_named_when_its_scope_is_added() -> None:
    turnstile = Turnstile(provisional_s=lambda _: math.inf)

    with pytest.raises(InvalidOption, match="the delay of 'a.*got inf"):
        turnstile.request((A,), 0.0)


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
