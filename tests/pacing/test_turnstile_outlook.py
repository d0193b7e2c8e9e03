"""The outlook: when a turn could come, which scope it waits for, and how many are ahead."""

from polite.pacing.turnstile import Turnstile
from tests.pacing.support import IP, A


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


def test_the_outlook_names_the_scope_that_holds_it_last() -> None:
    turnstile = Turnstile()
    turnstile.hold(A, 10.0, "Crawl-delay")
    turnstile.hold(IP, 20.0, "shared address")
    turnstile.request((IP,), 0.0)
    turnstile.request((IP,), 0.0)

    outlook = turnstile.outlook((A, IP), 0.0)

    assert (outlook.ready_at, outlook.scope, outlook.waiting) == (20.0, IP, 2)
    assert outlook.because == "shared address"
