"""The line in which turns stand at a scope."""

from polite.pacing.turn import ScopeState, Turn, TurnState


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
