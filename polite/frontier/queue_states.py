"""The states of an origin queue, and the table of its transitions, which is what runs: `OriginQueue.move` looks each event up.

Theory of operation:

1. A queue has a state for as long as it exists, and only `OriginQueue.move` writes it. Other code says what happened (an event).
2. A state and an event have one next state, or none. An event without a row is a defect: it raises `NoTransition`, which stops the
   frontier with that error, since a queue that goes on by a wrong idea of itself may wait for ever, or use a turn twice.
3. Whatever a queue needs next, it comes through SEEKING, which lasts no longer than a call of `Dispatcher._seek`. The rows of
   SEEKING are its answers.

tests/frontier/test_states.py shows that each row occurs.
"""

from collections.abc import Callable, Mapping
from enum import Enum


class QueueState(Enum):
    """What an origin queue waits for."""

    # Hot path: the hash of Enum is a Python call.
    __hash__: Callable[..., int] = object.__hash__

    NEW = "nothing: it was just made"
    SEEKING = "nothing: this step finds out what it needs next, rules or a turn"
    WAITING_SLOT = "a robots.txt fetch slot: rules are needed, and all slots are taken"
    FETCHING_RULES = "robots.txt: it holds a fetch slot"
    DECIDING = (
        "decisions about its tasks; then its turn is requested. Also for a step after a fetch that failed"
    )
    WAITING_TURN = "its turn: one request waits in the pacer. Perhaps, after CHOSEN, decisions first"
    READY = "an idle worker: the scheduler may choose one of its tasks"
    CHOSEN = "the turn of a task that the scheduler chose for an idle worker, until the end of the step"
    POSTPONED = "a point in time: it requests nothing before `wakes_at`"
    DROPPING = "nothing: its tasks are dropped, some in each step"
    WITHDRAWN = (
        "the scheduler, to give out its tasks: they are forgotten one by one, since another process has them"
    )
    REMOVED = "nothing: the frontier does not know it any more"


class QueueEvent(Enum):
    """What happened to an origin queue."""

    __hash__: Callable[..., int] = object.__hash__

    SEEK = "it needs something, as far as is known: `Dispatcher._seek` finds out what"
    SLOTS_TAKEN = "rules are needed, and no fetch slot is free: wait for one"
    SLOT_TAKEN = "rules are needed, and it got a fetch slot: start a seeker, for rules and then for a turn"
    RULES_KNOWN = "its rules are known: start a seeker, to decide about tasks and then for a turn"
    TASK_CHOSEN = "the scheduler chose a task, for which no turn was held or free: request one"
    TURN_REQUESTED = "all is decided, and one request for its turn waits in the pacer"
    SLOT_LEFT = "the fetch ended, with rules or without, or another queue needs the slot: free it"
    TASK_RETURNED = "the turn of the chosen task did not come in this step: the scheduler has the task again"
    POSTPONE = "no request is possible for long, or no rules can be had: set a timer"
    TURN_CAME = "its turn came, and is held for this step; or came unused, and would be free"
    GIVE_UP = (
        "no rules can be had, after the last try, or the policy permits no more requests: drop the tasks"
    )
    KEEP = "the rules are known by now: drop no more"
    WITHDRAW = "a shared store took the origin away, and the scheduler cannot give its tasks back at once"
    REMOVE = "no task is left, its tasks went back to the store, or a shared store took them away"


class NoTransition(RuntimeError):
    """Something happened to an origin queue that cannot happen in its state: a defect of polite."""


_S, _E = QueueState, QueueEvent

# What may end the states in which a queue waits: it is withdrawn or removed.
_ENDS = {_E.WITHDRAW: _S.WITHDRAWN, _E.REMOVE: _S.REMOVED}

TRANSITIONS: Mapping[QueueState, Mapping[QueueEvent, QueueState]] = {
    _S.NEW: {_E.SEEK: _S.SEEKING},
    _S.SEEKING: {
        _E.SLOTS_TAKEN: _S.WAITING_SLOT,
        _E.SLOT_TAKEN: _S.FETCHING_RULES,
        _E.RULES_KNOWN: _S.DECIDING,
        _E.TASK_CHOSEN: _S.CHOSEN,
        _E.TURN_REQUESTED: _S.WAITING_TURN,
        # The policy permits no more requests: a budget is spent, say.
        _E.GIVE_UP: _S.DROPPING,
        # robots.txt cannot be requested for long: the queue takes no fetch slot until then.
        _E.POSTPONE: _S.POSTPONED,
    },
    _S.WAITING_SLOT: {_E.SEEK: _S.SEEKING, **_ENDS},
    # It leaves its slot before anything else happens to it.
    _S.FETCHING_RULES: {_E.SLOT_LEFT: _S.DECIDING},
    _S.DECIDING: {
        _E.TURN_REQUESTED: _S.WAITING_TURN,
        # It left its slot to another queue, or put all its tasks before rules that expired meanwhile.
        _E.SEEK: _S.SEEKING,
        _E.POSTPONE: _S.POSTPONED,
        _E.GIVE_UP: _S.DROPPING,
        **_ENDS,
    },
    _S.WAITING_TURN: {
        _E.TURN_CAME: _S.READY,
        # The request is made only now: a queue that was CHOSEN had decisions to wait for.
        _E.TURN_REQUESTED: _S.WAITING_TURN,
        # The rules expired before the turn came. It is given back, once, and the rules are renewed.
        _E.SEEK: _S.SEEKING,
        # The request failed; or the turn came while no worker was idle, and began a delay.
        _E.POSTPONE: _S.POSTPONED,
        _E.GIVE_UP: _S.DROPPING,
        **_ENDS,
    },
    _S.READY: {
        # A task was given out, is undecided again, or needs a turn of its own; or the last one was refused.
        _E.SEEK: _S.SEEKING,
        # The worker was cancelled in this step: the turn is given back.
        _E.TURN_CAME: _S.READY,
        **_ENDS,
    },
    _S.CHOSEN: {
        # The turn came in this step, and the task was given out; or the rules expired.
        _E.SEEK: _S.SEEKING,
        _E.TASK_RETURNED: _S.WAITING_TURN,
        # The chosen task is refused: other tasks are left, or none.
        _E.TURN_REQUESTED: _S.WAITING_TURN,
        _E.REMOVE: _S.REMOVED,
    },
    _S.POSTPONED: {
        _E.SEEK: _S.SEEKING,
        # Only a delay ran.
        _E.TURN_CAME: _S.READY,
        **_ENDS,
    },
    _S.DROPPING: {
        _E.KEEP: _S.READY,
        # Tasks were put since.
        _E.SEEK: _S.SEEKING,
        **_ENDS,
    },
    _S.WITHDRAWN: {
        # Tasks were put since: the origin is this process's again.
        _E.SEEK: _S.SEEKING,
        **_ENDS,
    },
    _S.REMOVED: {},
}
