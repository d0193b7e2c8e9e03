"""The turnstile: order, cancellation, misuse, what delays the next turn, what is forgotten; and nothing starves. Time is given."""

import math
import random
import time

import pytest

from polite.errors import InvalidOption
from polite.pacing.turn import Outlook, ScopeState, Turn, TurnState
from polite.pacing.turnstile import Turnstile
from tests.pacing.support import ALL, IP, A, B, finish
from tests.support import slowness


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


def test_a_circle_too_long_to_be_followed_is_broken_too() -> None:
    turnstile, size = Turnstile(), 40
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

    assert time.process_time() - start < 2.0 * slowness()
    assert turnstile.queue.waiting == 0


def test_a_request_may_ask_for_a_longer_delay_at_its_narrowest_scope_and_never_for_a_shorter() -> None:
    turnstile = Turnstile(concurrency=2, provisional_s=1.0)
    turnstile.request((A, IP), 0.0, provisional_s=5.0)
    turnstile.request((B,), 0.0, provisional_s=0.5)
    assert [turnstile.outlook((key,), 0.0).ready_at for key in (A, IP, B)] == [5.0, 1.0, 1.0]


@pytest.mark.parametrize("seconds", [-math.inf, math.nan, math.inf])
def test_a_delay_that_is_no_time_and_a_turn_that_waits_are_errors(seconds: float) -> None:
    turnstile = Turnstile()
    turn, waiting = turnstile.request((A,), 0.0), turnstile.request((A,), 0.0)

    for given in (seconds, {A: seconds}):
        with pytest.raises(ValueError, match="finite"):
            turnstile.settle(turn, 0.0, given)
    with pytest.raises(ValueError, match="finite"):
        turnstile.hold(A, seconds)
    with pytest.raises(ValueError, match="settled"):
        turnstile.settle(waiting, 0.0, 1.0)
    with pytest.raises(ValueError, match="released"):
        turnstile.release(waiting, 0.0)

    assert not turn.settled


def test_a_turn_never_settled_delays_each_scope_for_its_own_time() -> None:
    turnstile = Turnstile(provisional_s={A: 3.0, IP: 1.0}.__getitem__)
    turnstile.release(turnstile.request((A, IP), 0.0, provisional_s=7.0), 0.0)
    assert turnstile.outlook((A,), 0.0).ready_at == 7.0
    assert turnstile.outlook((IP,), 0.0).ready_at == 1.0


def test_an_invalid_delay_is_named_when_its_scope_is_added() -> None:
    turnstile = Turnstile(provisional_s=lambda _: math.inf)
    with pytest.raises(InvalidOption, match="the delay of 'a.*got inf"):
        turnstile.request((A,), 0.0)


@pytest.mark.parametrize("refused", [True, False])
@pytest.mark.parametrize("scopes", [(A,), (A, IP)])
def test_an_open_turn_that_asks_again_keeps_the_back_off_of_another(scopes, refused):
    turnstile = Turnstile(concurrency=2, provisional_s=1.0)
    first, slow = turnstile.request(scopes, 0.0), turnstile.request(scopes, 0.0)
    assert turnstile.due(1.0) == [slow]

    turnstile.settle(first, 2.0, {A: 60.0}, refused=refused)
    turnstile.settle(first, 3.0, 1.0)

    assert turnstile.ask_again(slow, 3.0) == 59.0
    assert turnstile.ask_again(slow, 62.0) == 0.0
    turnstile.settle(first, 63.0, 1.0)
    assert turnstile.ask_again(slow, 63.0) == 0.0


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


def test_a_turn_that_is_open_while_limits_change_ends_by_the_new_ones() -> None:
    limits, rests = {A: 2, B: 1}, {A: 1.0, B: 9.0}
    turnstile = Turnstile(concurrency=limits.__getitem__, provisional_s=rests.__getitem__)
    unsettled, unused = (turnstile.request((scope,), 0.0) for scope in (A, B))

    rests[A], limits[B] = 50.0, 2
    turnstile.relimit(1.0)
    turnstile.release(unsettled, 2.0)
    turnstile.cancel(unused, 2.0)

    assert turnstile.outlook((A,), 2.0).ready_at == 52.0
    assert turnstile.outlook((B,), 2.0).ready_at == 10.0


def test_the_outlook_names_the_scope_that_holds_it_last() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 10.0, "Crawl-delay")
    turnstile.hold(IP, 20.0, "shared address")
    for _ in range(2):
        turnstile.request((IP,), 0.0)
    assert turnstile.outlook((A, IP), 0.0) == Outlook(20.0, IP, 2, 0, "shared address", None)


def pass_by(turnstile, now, requests, key):
    for _ in range(requests):
        finish(turnstile, turnstile.request((key,), now), now, 0.0)


def test_memory_falls_when_the_crawl_narrows_to_one_origin() -> None:
    turnstile = Turnstile()
    for at in range(1_000):
        finish(turnstile, turnstile.request((at, ("ip", at), ALL), 0.0), 0.0, 0.0)
    pass_by(turnstile, 100.0, 10_000, A)
    assert len(turnstile) <= 2


def test_a_back_off_is_never_forgotten() -> None:
    turnstile = Turnstile()
    turn = turnstile.request((A,), 0.0)
    turnstile.settle(turn, 0.0, 10.0)
    turnstile.release(turn, 0.0)

    pass_by(turnstile, 9.0, 1_000, B)
    assert turnstile.outlook((A,), 9.0).ready_at == 10.0
    pass_by(turnstile, 12.0, 1_000, B)
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


def test_each_turn_is_granted_at_the_very_end_of_its_delay() -> None:
    turnstile, chance, ends = Turnstile(), random.Random(7), list[float]()
    now: float | None = 0.0
    while now is not None:
        for turn in turnstile.due(now):
            assert turn.granted_at == ends[int(str(turn.narrowest))]
        for _ in range(min(3, 300 - len(ends))):
            ends.append(now + chance.choice([0.0, 0.01, 5.0]) + chance.random() / 50)
            turnstile.hold(len(ends) - 1, ends[-1])
            turnstile.request((len(ends) - 1,), now)
        now = turnstile.queue.next_at
    assert not turnstile.queue.waiting


# Where each request delays its scopes by R seconds at most, one that names k scopes, each with n that came before it, is granted
# within R * k * (n + 1) seconds: nothing that comes later overtakes it, and where it is first it keeps its place.
REST_S = 1.0


def wait(turnstile: Turnstile, scopes: tuple[str, ...], now: float) -> Turn:
    """A request that waits: where it would be granted at once, the scopes rest for it, and it asks again."""
    while (turn := turnstile.request(scopes, now)).granted_at is not None:
        finish(turnstile, turn, now)
    return turn


def served_at(turnstile, wanted, busy, chance, most_s):
    """When the wanted turn was granted, while whoever is served asks again at once."""
    now = 0.0
    while now <= most_s:
        for turn in turnstile.due(now):
            if turn is wanted:
                return now
            finish(turnstile, turn, now, REST_S * chance.choice([0.5, 1.0, 1.0]))
            wait(turnstile, turn.scopes if chance.random() < 0.8 else chance.choice(busy), now)
        following = turnstile.queue.next_at
        assert following is not None
        now = max(now, following)
    return now


@pytest.mark.parametrize("scopes", [2, 6, 20])
@pytest.mark.parametrize("rivals", [0, 1, 5])
@pytest.mark.parametrize("seed", range(2))
def test_a_request_with_many_scopes_is_served_within_the_sum_of_those_ahead_at_each(scopes, rivals, seed):
    chance = random.Random(seed)
    names = [f"scope-{number}" for number in range(scopes)]
    chance.shuffle(names)
    turnstile = Turnstile()
    # At each scope one that rests, and as many as there are rivals, who asked before and ask again for ever.
    for name in names:
        finish(turnstile, turnstile.request((name,), 0.0), 0.0)
        for _ in range(rivals):
            wait(turnstile, (name,), 0.0)
    wanted = wait(turnstile, tuple(names), 0.0)
    for name in names * 3:
        wait(turnstile, (name,), 0.0)

    bound = REST_S * scopes * (rivals + 1)
    assert served_at(turnstile, wanted, [(name,) for name in names], chance, bound) <= bound
