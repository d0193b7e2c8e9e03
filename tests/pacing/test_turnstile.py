"""Turns at one scope and at several, by hand; time is an argument."""

import math
import time
from collections.abc import Hashable

import pytest

from polite.errors import InvalidOption, Overloaded
from polite.pacing.turn import Turn, TurnState
from polite.pacing.turnstile import Turnstile

A, B, C, IP, ALL = "a.example", "b.example", "c.example", "192.0.2.1", "everything"


def finish(turnstile: Turnstile, turn: Turn, now: float, pause_s: float = 1.0) -> None:
    turnstile.settle(turn, now, pause_s)
    turnstile.release(turn, now)


def test_a_free_scope_gives_its_turn_at_once() -> None:
    turnstile = Turnstile()

    turn = turnstile.request((A,), 5.0)

    assert (turn.state, turn.granted_at, turn.scopes) == (TurnState.OPEN, 5.0, (A,))
    assert turnstile.next_at is None


def test_the_next_turn_comes_when_the_last_is_settled_and_rested_and_released() -> None:
    turnstile = Turnstile()
    first = turnstile.request((A,), 0.0)
    second = turnstile.request((A,), 0.0)

    turnstile.settle(first, 10.0, 2.0)
    assert turnstile.due(100.0) == []
    turnstile.release(first, 100.0)

    assert turnstile.due(100.0) == [second]


def test_a_released_scope_still_rests() -> None:
    turnstile = Turnstile()
    finish(turnstile, turnstile.request((A,), 0.0), 10.0, 2.0)
    second = turnstile.request((A,), 11.0)

    assert turnstile.next_at == 12.0
    assert turnstile.due(math.nextafter(12.0, 0)) == []
    assert turnstile.due(12.0) == [second]
    assert second.granted_at == 12.0


def test_those_that_wait_go_in_the_order_in_which_they_asked() -> None:
    turnstile = Turnstile()
    opened = turnstile.request((A,), 0.0)
    waiting = [turnstile.request((A,), 0.0) for _ in range(50)]

    given = []
    for now in range(1, 51):
        finish(turnstile, opened, now, 0.0)
        (opened,) = turnstile.due(now)
        given.append(opened)

    assert given == waiting


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


def test_nobody_who_comes_later_overtakes_one_whose_time_has_come() -> None:
    turnstile = Turnstile()
    finish(turnstile, turnstile.request((A,), 0.0), 0.0)
    early = turnstile.request((A,), 0.5)

    late = turnstile.request((A,), 2.0)

    assert turnstile.due(2.0) == [early]
    assert late.state is TurnState.WAITING


def test_scopes_are_taken_together_or_not_at_all() -> None:
    turnstile = Turnstile()
    turnstile.request((IP,), 0.0)
    both = turnstile.request((A, IP), 0.0)
    assert both.state is TurnState.WAITING
    assert turnstile.outlook((A,), 0.0).open == 0

    # Waiting for the address holds no place at the origin, but nobody overtakes it there.
    assert turnstile.request((A,), 0.0).state is TurnState.WAITING
    assert turnstile.request((B,), 0.0).state is TurnState.OPEN


def test_a_turn_of_three_scopes_rests_and_frees_all_three() -> None:
    turnstile = Turnstile()
    first = turnstile.request((A, IP, ALL), 0.0)
    others = [turnstile.request(scopes, 0.0) for scopes in ((A,), (B, IP), (C, ALL))]

    finish(turnstile, first, 1.0, 2.0)

    assert turnstile.due(2.9) == []
    assert sorted(turn.scopes for turn in turnstile.due(3.0)) == [(A,), (B, IP), (C, ALL)]
    assert all(turn.state is TurnState.OPEN for turn in others)


def test_a_back_off_at_one_origin_does_not_stand_in_the_line_of_the_whole_crawl() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 3600.0)
    blocked = turnstile.request((A, ALL), 0.0)

    other = turnstile.request((B, ALL), 0.0)

    assert other.state is TurnState.OPEN
    assert blocked.state is TurnState.WAITING


def test_a_turn_goes_back_when_an_earlier_scope_became_busy_and_blocks_nobody() -> None:
    turnstile = Turnstile()
    running = turnstile.request((ALL,), 0.0)
    back, other = turnstile.request((A, IP, ALL), 0.0), turnstile.request((B, IP, ALL), 0.0)
    turnstile.hold(A, 100.0)

    finish(turnstile, running, 1.0, 0.0)

    assert turnstile.due(1.0) == [other]
    finish(turnstile, other, 1.0, 0.0)
    assert turnstile.due(99.9) == []
    assert turnstile.due(100.0) == [back]


def test_a_turn_that_went_back_is_still_the_first_of_its_origin() -> None:
    turnstile = Turnstile()
    running = turnstile.request((ALL,), 0.0)
    first = turnstile.request((A, ALL), 0.0)
    turnstile.hold(A, 10.0)
    finish(turnstile, running, 1.0, 0.0)
    assert turnstile.due(1.0) == []

    second = turnstile.request((A,), 2.0)

    assert turnstile.due(10.0) == [first]
    assert second.state is TurnState.WAITING


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


def test_scopes_named_in_opposite_orders_do_not_lock_each_other_out() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 1.0)
    turnstile.hold(B, 2.0)
    one, other = turnstile.request((A, B), 0.0), turnstile.request((B, A), 0.0)
    turnstile.hold(A, 3.0)

    given = []
    for now in (1.0, 2.0, 3.0, 3.0, 3.0):
        for turn in turnstile.due(now):
            given.append(turn)
            finish(turnstile, turn, now, 0.0)

    assert sorted(given, key=id) == sorted((one, other), key=id)
    assert (one.scopes, other.scopes) == ((A, B), (B, A))


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


def test_a_scope_named_twice_is_taken_once() -> None:
    turnstile = Turnstile()

    turn = turnstile.request((A, A), 0.0)
    finish(turnstile, turn, 0.0, 0.0)

    assert turn.scopes == (A,)
    assert turnstile.request((A,), 0.0).state is TurnState.OPEN


def test_a_request_without_a_scope_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one scope"):
        Turnstile().request((), 0.0)


def test_with_concurrency_a_grant_arms_a_rest_of_its_own() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.5)
    turnstile.request((A,), 10.0)
    second = turnstile.request((A,), 10.0)
    third = turnstile.request((A,), 10.0)

    assert turnstile.due(11.4) == []
    assert turnstile.due(11.5) == [second]
    assert turnstile.due(100.0) == []
    assert third.state is TurnState.WAITING


def test_a_request_may_ask_for_a_longer_rest_at_its_narrowest_scope_and_never_for_a_shorter() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.0)

    turnstile.request((A, IP), 0.0, provisional_s=5.0)
    turnstile.request((B,), 0.0, provisional_s=0.5)

    assert [turnstile.outlook((key,), 0.0).ready_at for key in (A, IP, B)] == [5.0, 1.0, 1.0]


def test_with_concurrency_a_place_that_becomes_free_goes_to_the_next() -> None:
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


def test_each_scope_may_rest_for_its_own_time() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A, IP, ALL), 0.0)

    turnstile.settle(turn, 0.0, {A: 5.0, IP: 1.0})
    turnstile.release(turn, 0.0)

    assert [turnstile.outlook((key,), 0.0).ready_at for key in (A, IP, ALL)] == [5.0, 1.0, 0.0]


def test_a_pause_for_a_scope_that_is_not_the_turns_is_an_error_and_rests_nobody() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)

    with pytest.raises(ValueError, match=r"b\.example"):
        turnstile.settle(turn, 0.0, {A: 5.0, B: 1.0})

    assert not turn.settled
    assert turnstile.outlook((A,), 0.0).ready_at == 0.0


@pytest.mark.parametrize("pause_s", [-1.0, math.nan, math.inf])
def test_a_pause_that_is_no_time_is_an_error(pause_s: float) -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)

    for given in (pause_s, {A: pause_s}):
        with pytest.raises(ValueError, match="finite"):
            turnstile.settle(turn, 0.0, given)

    assert not turn.settled


def test_a_turn_released_without_settling_rests_all_the_same() -> None:
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


def test_a_turn_given_back_leaves_no_rest() -> None:
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


def test_a_waiter_that_leaves_hurries_nobody_and_loses_nobody() -> None:
    turnstile = Turnstile()
    finish(turnstile, turnstile.request((A,), 0.0), 0.0, 5.0)
    waiting = [turnstile.request((A,), 0.0) for _ in range(4)]

    for turn in (waiting[0], waiting[2], waiting[0]):
        turnstile.cancel(turn, 1.0)

    assert turnstile.waiting == 2
    assert turnstile.due(4.9) == []
    assert turnstile.due(5.0) == [waiting[1]]
    finish(turnstile, waiting[1], 5.0, 0.0)
    assert turnstile.due(5.0) == [waiting[3]]


def test_a_front_that_leaves_lets_those_behind_it_go_on() -> None:
    turnstile = Turnstile()
    turnstile.request((ALL,), 0.0)
    front = turnstile.request((A, ALL), 0.0)
    behind = turnstile.request((A,), 0.0)

    turnstile.cancel(front, 1.0)

    assert turnstile.due(1.0) == [behind]


def test_the_last_waiter_that_leaves_leaves_an_early_wake_up_that_gives_nothing() -> None:
    turnstile = Turnstile()
    finish(turnstile, turnstile.request((A,), 0.0), 0.0)
    turnstile.cancel(turnstile.request((A,), 0.0), 0.5)

    assert turnstile.due(10.0) == []
    assert turnstile.next_at is None


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


def test_a_rest_for_each_scope_may_be_asked_of_a_function() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s={A: 3.0, IP: 1.0}.__getitem__)
    turnstile.request((A, IP), 0.0)

    assert turnstile.outlook((A,), 0.0).ready_at == 3.0
    assert turnstile.outlook((IP,), 0.0).ready_at == 1.0


def test_a_turn_never_settled_rests_each_scope_for_its_own_time() -> None:
    turnstile = Turnstile(provisional_s={A: 3.0, IP: 1.0}.__getitem__)
    turnstile.release(turnstile.request((A, IP), 0.0, provisional_s=7.0), 0.0)

    assert turnstile.outlook((A,), 0.0).ready_at == 7.0
    assert turnstile.outlook((IP,), 0.0).ready_at == 1.0


def test_a_rest_without_meaning_is_named_when_its_scope_is_met() -> None:
    turnstile = Turnstile(provisional_s=lambda _: math.inf)

    with pytest.raises(InvalidOption, match="the delay of 'a.*got inf"):
        turnstile.request((A,), 0.0)


def test_fewer_may_go_at_one_time_from_now_and_those_under_way_may_end() -> None:
    limits = {A: 3}
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=0.0)
    turns = [turnstile.request((A,), 0.0) for _ in range(3)]
    waiting = turnstile.request((A,), 0.0)

    limits[A] = 1
    turnstile.relimit(0.0, [A, "unknown"])
    for turn in turns:
        assert turnstile.due(1.0) == []
        turnstile.settle(turn, 1.0, 0.0)
        turnstile.release(turn, 1.0)

    assert turnstile.due(1.0) == [waiting]
    assert turnstile.request((A,), 1.0).state is TurnState.WAITING


def test_more_may_go_at_one_time_from_now_and_not_before_the_rest_that_a_grant_would_have_armed() -> None:
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


def test_a_scope_that_was_not_told_yet_is_told_before_a_turn_is_given() -> None:
    limits, rests = {A: 2, B: 2}, {A: 1.0, B: 1.0}
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=rests.__getitem__)
    turnstile.request((A, B), 0.0)
    waiting = turnstile.request((A, B), 0.0)

    limits.update(dict.fromkeys(limits, 1))
    turnstile.outdate()

    assert turnstile.due(5.0) == []
    assert turnstile.request((B,), 5.0).state is TurnState.WAITING
    assert waiting.state is TurnState.WAITING


def test_nor_does_one_that_was_not_told_rest_for_less_than_is_asked_now() -> None:
    rests = {A: 1.0}
    turnstile = Turnstile(concurrency=2, provisional_s=rests.__getitem__)
    unsettled = turnstile.request((A,), 0.0)

    rests[A] = 50.0
    turnstile.outdate()
    turnstile.release(unsettled, 2.0)

    assert turnstile.outlook((A,), 2.0).ready_at == 52.0


def test_a_turn_that_is_given_back_before_its_scope_was_told_makes_it_rest_as_one_under_way_does() -> None:
    limits = {A: 1}
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=9.0)
    turn = turnstile.request((A,), 0.0)

    limits[A] = 2
    turnstile.outdate()
    turnstile.cancel(turn, 1.0)

    assert turnstile.outlook((A,), 1.0).ready_at == 10.0


def test_scopes_are_told_so_many_at_a_time_and_each_once() -> None:
    asked: list[Hashable] = []

    def concurrency(scope: Hashable) -> int:
        asked.append(scope)
        return 1

    turnstile = Turnstile(concurrency=concurrency)
    for scope in range(10):
        turnstile.request((scope,), 0.0)
    asked.clear()
    turnstile.outdate()
    turnstile.request((7,), 0.0)

    more = [(turnstile.renew(1.0, 4), len(asked)) for _ in range(3)]

    assert more == [(True, 4), (True, 8), (False, 10)]
    assert sorted(asked, key=str) == list(range(10))
    assert not turnstile.renew(1.0, 4)


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


def test_a_new_limit_shortens_no_rest() -> None:
    limits = {A: 1}
    turnstile = Turnstile(concurrency=limits.__getitem__)
    turn = turnstile.request((A,), 0.0)
    turnstile.settle(turn, 0.0, 60.0)
    turnstile.release(turn, 0.0)

    limits[A] = 5
    turnstile.relimit(1.0)

    assert turnstile.outlook((A,), 1.0).ready_at == 60.0


def test_the_outlook_says_since_when_a_scope_holds() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 5.0)

    assert turnstile.outlook((A,), 7.0).since == 5.0
    turnstile.settle(turn, 8.0, 10.0)
    turnstile.release(turn, 9.0)
    assert turnstile.outlook((A,), 9.0).since == 8.0
    turnstile.hold(A, 100.0, "asked", now=12.0)
    assert turnstile.outlook((A,), 13.0).since == 12.0
    assert turnstile.outlook((A,), 200.0).since is None
    turnstile.hold(B, 100.0)
    assert turnstile.outlook((B,), 13.0).since == 12.0


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


def test_time_that_goes_backwards_makes_nothing_sooner() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=3.0)
    turnstile.due(100.0)

    turn = turnstile.request((A,), 50.0)
    assert turnstile.outlook((A,), 50.0).ready_at == 103.0
    finish(turnstile, turn, 60.0, 5.0)

    assert turnstile.outlook((A,), 60.0).ready_at == 105.0
    assert turnstile.request((A,), 104.0).state is TurnState.WAITING


def test_a_turn_of_another_turnstile_is_unknown() -> None:
    turnstile, stranger = Turnstile(), Turnstile().request((A,), 0.0)

    for use in (turnstile.release, turnstile.cancel, lambda turn, now: turnstile.settle(turn, now, 1.0)):
        with pytest.raises(ValueError, match="not given here"):
            use(stranger, 0.0)


def test_a_waiting_turn_can_be_cancelled_but_neither_settled_nor_released() -> None:
    turnstile = Turnstile()
    turnstile.request((A,), 0.0)
    turn = turnstile.request((A,), 0.0)

    with pytest.raises(ValueError, match="settled"):
        turnstile.settle(turn, 0.0, 1.0)
    with pytest.raises(ValueError, match="released"):
        turnstile.release(turn, 0.0)


def test_a_turn_given_back_cannot_be_settled() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)
    turnstile.cancel(turn, 0.0)

    turnstile.release(turn, 0.0)
    with pytest.raises(ValueError, match="settled"):
        turnstile.settle(turn, 0.0, 1.0)


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"max_waiting": 0},
        {"provisional_s": -1.0},
        {"provisional_s": math.nan},
        {"strikes_kept_s": math.inf},
    ],
)
def test_an_option_without_meaning_is_named(options: dict[str, float]) -> None:
    (name,) = options

    with pytest.raises(InvalidOption, match=name):
        Turnstile(**options)  # type: ignore[arg-type]


def test_a_concurrency_without_meaning_is_named_when_its_scope_is_met() -> None:
    turnstile = Turnstile(concurrency=lambda scope: 0)

    with pytest.raises(InvalidOption, match=r"concurrency of 'a\.example' must be .*got 0"):
        turnstile.request((A,), 0.0)


def test_the_outlook_of_a_free_request_is_now() -> None:
    turnstile = Turnstile()

    outlook = turnstile.outlook((A, IP), 7.0)

    assert (outlook.ready_at, outlook.scope, outlook.waiting, outlook.open) == (7.0, None, 0, 0)
    assert len(turnstile) == 0


def test_the_outlook_names_the_scope_that_holds_it_last() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 10.0, "Crawl-delay")
    turnstile.hold(IP, 20.0, "shared address")
    turnstile.request((IP,), 0.0)
    turnstile.request((IP,), 0.0)

    outlook = turnstile.outlook((A, IP), 0.0)

    assert (outlook.ready_at, outlook.scope, outlook.waiting) == (20.0, IP, 2)
    assert outlook.because == "shared address"


def test_the_outlook_counts_turns_under_way_and_those_ahead() -> None:
    turnstile = Turnstile()
    turnstile.request((A,), 0.0)
    turnstile.cancel(turnstile.request((A,), 0.0), 0.0)
    left = [turnstile.request((A,), 0.0) for _ in range(3)]
    turnstile.cancel(left[1], 0.0)

    outlook = turnstile.outlook((A,), 5.0)

    assert (outlook.ready_at, outlook.open, outlook.waiting, outlook.because) == (5.0, 1, 2, None)


def test_a_turn_shows_what_it_is() -> None:
    turn = Turnstile().request((A,), 3.0)

    assert repr(turn) == "Turn(('a.example',), open, granted_at=3.0)"


def pass_by(turnstile: Turnstile, now: float, requests: int, key: Hashable) -> None:
    """So many requests that come and go."""
    for _ in range(requests):
        finish(turnstile, turnstile.request((key,), now), now, 0.0)


def test_idle_scopes_are_forgotten_as_requests_come() -> None:
    turnstile = Turnstile()
    for at in range(10_000):
        finish(turnstile, turnstile.request((at,), float(at)), float(at), 10.0)

    assert len(turnstile) < 200


def test_memory_falls_when_the_crawl_narrows_to_one_origin() -> None:
    turnstile = Turnstile()
    for at in range(1_000):
        finish(turnstile, turnstile.request((at, ("ip", at), ALL), 0.0), 0.0, 0.0)

    pass_by(turnstile, 100.0, 2_000, A)

    assert len(turnstile) <= 2


def test_a_back_off_still_running_is_never_forgotten() -> None:
    turnstile = Turnstile()
    finish(turnstile, turnstile.request((A,), 0.0), 0.0, 86_400.0)

    pass_by(turnstile, 86_399.0, 1_000, B)

    assert turnstile.request((A,), 86_399.0).state is TurnState.WAITING


def test_refusals_are_remembered_for_a_while_after_the_rest() -> None:
    turnstile = Turnstile(strikes_kept_s=60.0)
    turn = turnstile.request((A,), 0.0)
    turnstile.settle(turn, 0.0, 10.0, strike=True)
    turnstile.release(turn, 0.0)

    pass_by(turnstile, 69.0, 1_000, B)
    assert turnstile.strikes(A) == 1
    pass_by(turnstile, 71.0, 1_000, B)

    assert turnstile.strikes(A) == 0
    assert len(turnstile) == 1


def test_a_scope_somebody_waits_for_is_not_forgotten() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 100.0)
    finish(turnstile, turnstile.request((IP,), 0.0), 0.0, 0.0)
    both = turnstile.request((A, IP), 0.0)
    pass_by(turnstile, 50.0, 1_000, B)
    other = turnstile.request((IP,), 100.0)

    assert turnstile.due(100.0) == []
    turnstile.cancel(other, 100.0)
    assert turnstile.due(100.0) == [both]


def test_scopes_of_a_request_that_was_refused_are_forgotten_too() -> None:
    turnstile = Turnstile(max_waiting=1)
    turnstile.request((ALL,), 0.0)
    turnstile.request((ALL,), 0.0)
    for at in range(500):
        with pytest.raises(Overloaded):
            turnstile.request((at, ALL), 0.0)

    pass_by(turnstile, 1.0, 1_000, B)

    assert len(turnstile) <= 2


def test_holds_that_are_over_are_forgotten() -> None:
    turnstile = Turnstile()
    for at in range(500):
        turnstile.hold(at, 1.0)

    pass_by(turnstile, 2.0, 1_000, B)

    assert len(turnstile) == 1


def test_forgetting_keeps_up_with_requests_of_several_new_scopes() -> None:
    turnstile = Turnstile()
    for at in range(5_000):
        now = float(at)
        finish(turnstile, turnstile.request((at, ("domain", at), ("ip", at)), now), now, 10.0)

    assert len(turnstile) < 500
