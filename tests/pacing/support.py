"""What tests of the turnstile share: names of scopes, and the end of a request."""

from polite.pacing.turn import Turn
from polite.pacing.turnstile import Turnstile

A, B, C, IP, ALL = "a.example", "b.example", "c.example", "192.0.2.1", "everything"


def finish(turnstile: Turnstile, turn: Turn, now: float, pause_s: float = 1.0) -> None:
    turnstile.settle(turn, now, pause_s)
    turnstile.release(turn, now)
