"""Nothing starves: a request that needs many scopes is granted within a bound, however many others come all the time.

Where each request delays its scopes by R seconds at most, one that names k scopes, each with n that came before it, is granted
within R * k * (n + 1) seconds: nothing that comes later overtakes it, and where it is first it keeps its place.
"""

import random

import pytest

from polite.pacing.turn import Turn
from polite.pacing.turnstile import Turnstile
from tests.pacing.support import finish

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
