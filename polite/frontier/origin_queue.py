"""The tasks of one origin that wait (Mercator's back queue), and how far the origin is on its way to a turn."""

import math
from collections import deque
from collections.abc import Hashable
from enum import Enum

from polite.frontier.queue_states import TRANSITIONS, NoTransition, QueueEvent, QueueState
from polite.gate.rules_cache import Grounds
from polite.origin import Origin, Target
from polite.pacing.pacer import TurnRequest
from polite.pacing.turn import Turn
from polite.robots.decision import Decision
from polite.task import Task


class Verdict(Enum):
    """What is decided about a scheduled task, unless it is refused."""

    ALLOWED = "the newest rules allow it"
    UNDECIDED = "other rules than the newest allowed it"


# Hot path: an enum's member costs a descriptor call each time it is named.
_ALLOWED, _UNDECIDED = Verdict.ALLOWED, Verdict.UNDECIDED


class OriginQueue:
    """The tasks of one origin. It exists as long as it has tasks.

    A queue keeps no rules, which may be large, but what they decided: `meaning` says which rules allowed its tasks. Only if other
    rules replace those while tasks wait, `allowed` and `refused` say which of these tasks are decided anew.

    Other objects read its attributes, and only its methods write them.

    Attributes:
        origin: The origin of all its tasks.
        state: What it waits for.
        unchecked: Tasks that were put while no rules were known.
        scheduled: How many allowed tasks are at the scheduler, or chosen.
        sample: The URL for whose scopes the next turn is requested.
        requested: The URL for whose scopes the last turn was requested.
        grounds: The newest rules, or the failure to get any, that the queue was told of.
        meaning: The meaning of the rules that decided about its tasks.
        allowed: Numbers of the tasks that these rules allow; None for all.
        refused: The tasks that these rules do not allow.
        recheck: Rules were missing when a task had to be decided anew.
        turn: The turn it holds, for one step of the event loop at most.
        chosen: The task that the scheduler chose, until its own turn comes.
        seeker: The request on its behalf that is under way: a task, a callback or a timer.
        renewed: A turn was given back so that the rules could be renewed; the next one comes first.
        wakes_at: The end of POSTPONED (monotonic seconds).
        fetched: Its robots.txt was fetched, and no task was given out since.
        failures: How often in a row its rules could not be had.
        turn_failures: How often in a row no turn could be requested.
        drop_reason: Why its tasks are dropped (DROPPING).
        to_drop: How many of the first tasks in `unchecked` are dropped.
    """

    __slots__ = (
        "allowed",
        "chosen",
        "drop_reason",
        "failures",
        "fetched",
        "grounds",
        "meaning",
        "origin",
        "recheck",
        "refused",
        "renewed",
        "requested",
        "sample",
        "scheduled",
        "seeker",
        "state",
        "to_drop",
        "turn",
        "turn_failures",
        "unchecked",
        "wakes_at",
    )

    def __init__(self, origin: Origin, sample: Target, grounds: Grounds | None = None) -> None:
        self.origin: Origin = origin
        self.state: QueueState = QueueState.NEW
        self.unchecked: deque[Task] | None = None
        self.scheduled: int = 0
        self.sample: Target = sample
        self.requested: Target | None = None
        self.grounds = grounds
        self.meaning: Hashable = None
        self.allowed: set[int] | None = None
        self.refused: dict[int, Decision] | None = None
        self.recheck: bool = False
        self.turn: Turn | None = None
        self.chosen: Task | None = None
        self.seeker: TurnRequest | None = None
        self.renewed: bool = False
        self.wakes_at: float = -math.inf
        self.fetched: bool = False
        self.failures: int = 0
        self.turn_failures: int = 0
        self.drop_reason: str | None = None
        self.to_drop: int = 0

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return self.scheduled + len(self.unchecked or ())

    def move(self, event: QueueEvent) -> None:
        """Go to the state to which the event leads. Raises NoTransition if there is none."""
        try:
            self.state = TRANSITIONS[self.state][event]
        except KeyError:
            raise NoTransition(
                f"the queue of {self.origin} is {self.state.name}, and {event.name} happened: a defect of polite"
            ) from None

    # Tasks that no known rules decided about.

    def put_unchecked(self, task: Task) -> None:
        """Add a task about which no known rules can decide."""
        if self.unchecked is None:
            self.unchecked = deque()
        self.unchecked.append(task)

    def pop_unchecked(self) -> Task:
        """Remove and return the task that was put unchecked first."""
        if not self.unchecked:
            raise IndexError(f"no unchecked task of {self.origin} waits")
        return self.unchecked.popleft()

    def forget_unchecked(self) -> None:
        """Remove all tasks that were put unchecked."""
        self.unchecked, self.to_drop = None, 0

    # Rules, and what they decided.

    def fetch(self) -> None:
        """Note that robots.txt is requested."""
        self.fetched = True

    def learn(self, grounds: Grounds, meaning: Hashable) -> None:
        """Let rules decide that could be had."""
        self.grounds, self.failures = grounds, 0
        self.renew(meaning)

    def miss(self, grounds: Grounds, *, counted: bool) -> None:
        """Note why no rules could be had. `counted`: the failure that comes next was counted before."""
        self.failures -= counted
        self.grounds = grounds

    def count_failures(self, failures: int) -> None:
        """Set how often in a row its rules could not be had."""
        self.failures = failures

    def must_recheck(self) -> None:
        """Note that rules must be learned to decide anew about tasks."""
        self.recheck = True

    def rechecked(self) -> None:
        """Note that no task must be decided anew."""
        self.recheck = False

    def renew(self, meaning: Hashable) -> None:
        """Let rules of this meaning decide from now on. Tasks that other rules allowed become undecided."""
        if meaning != self.meaning:
            self.meaning = meaning
            self.allowed, self.refused = set() if self.scheduled else None, None

    def schedule(self, task: Task, meaning: Hashable) -> None:
        """Count a task that rules of this meaning allow, and that goes to the scheduler."""
        if meaning != self.meaning:
            self.renew(meaning)
        self.scheduled += 1
        if self.allowed is not None:
            self.decide(task, None)

    def decide(self, task: Task, refusal: Decision | None) -> None:
        """Record a new decision about a scheduled task; `refusal` if it is not allowed any more."""
        if self.allowed is None:
            return
        if refusal is None:
            self.allowed.add(task.number)
            self._settle()
        else:
            self.refused = self.refused or {}
            self.refused[task.number] = refusal

    def verdict(self, task: Task) -> Decision | Verdict:
        """Return what is decided about a scheduled task: the refusal if it is not allowed any more."""
        if self.allowed is None or task.number in self.allowed:
            return _ALLOWED
        return _UNDECIDED if self.refused is None else self.refused.get(task.number, _UNDECIDED)

    def remove(self, task: Task) -> None:
        """Remove a scheduled task, which left or is unchecked again."""
        self.scheduled -= 1
        if self.allowed is not None:
            self.allowed.discard(task.number)
            if self.refused is not None:
                self.refused.pop(task.number, None)
            self._settle()

    def _settle(self) -> None:
        if self.allowed is not None and len(self.allowed) == self.scheduled:
            self.allowed = self.refused = None

    # The way to a turn.

    def take_sample(self, target: Target) -> None:
        """Request the next turn for this URL's scopes."""
        self.sample = target

    def request(self, target: Target) -> None:
        """Note the URL for whose scopes a turn is requested."""
        self.requested = target

    def go_first(self) -> None:
        """Request the next turn as the first one: the last was given back."""
        self.renewed = True

    def go_in_order(self) -> None:
        """Request the next turn in the order of requests."""
        self.renewed = False

    def seek_by(self, seeker: TurnRequest | None) -> None:
        """Note the request on its behalf that is under way."""
        self.seeker = seeker

    def count_turn_failure(self) -> None:
        """Count that no turn could be requested."""
        self.turn_failures += 1

    def turn_came(self, turn: Turn) -> None:
        """Hold the turn that was requested."""
        self.turn = turn
        self.turn_failures = 0

    def hold(self, turn: Turn | None) -> None:
        """Hold a turn that was taken at once, if there was one."""
        self.turn = turn

    def release(self) -> Turn | None:
        """Return the turn that it held, and hold none."""
        turn, self.turn = self.turn, None
        return turn

    def choose(self, task: Task) -> None:
        """Note the scheduler's choice."""
        self.chosen = task

    def unchoose(self) -> Task | None:
        """Return the task that was chosen; then none is."""
        task, self.chosen = self.chosen, None
        return task

    def given(self, task: Task) -> None:
        """Remove a task that was given to a worker."""
        self.fetched = False
        self.remove(task)

    # Waiting for long, and the end.

    def sleep(self, until: float, timer: TurnRequest) -> None:
        """Note when its time comes (monotonic seconds), and the timer that will tell."""
        self.wakes_at = until
        self.seeker = timer

    def wake(self) -> None:
        """Note that its time came."""
        self.seeker = None
        self.wakes_at = -math.inf

    def drop_because(self, reason: str) -> None:
        """Have all tasks dropped that are unchecked now, or scheduled."""
        self.drop_reason = reason
        self.to_drop = len(self.unchecked or ())

    def pop_dropped(self) -> Task:
        """Remove and return the next of the unchecked tasks to be dropped."""
        self.to_drop -= 1
        return self.pop_unchecked()

    def dropped_unchecked(self) -> None:
        """Note that no more of the unchecked tasks are to be dropped."""
        self.to_drop = 0

    def keep(self) -> None:
        """Have no more tasks dropped."""
        self.drop_reason = None

    def begin_anew(self) -> None:
        """Forget that the origin was given up: the tasks that wait now were put later."""
        self.drop_reason = self.grounds = None
        self.failures = self.turn_failures = 0
