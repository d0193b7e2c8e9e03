"""Brings origins to their turns, one request per origin in the pacer, and lets the scheduler choose once the turn is there.

Each origin with tasks has a lane. A lane asks for the origin's rules, then for a turn; only then is its origin ready, and the
scheduler, asked with all others that are ready at that moment, names the task. When nobody is there to fetch, the turn goes
back at once, and the origin stays ready: it holds nothing. A task chosen of such an origin asks for its turn again, which is
given at once nearly always; when it is not, the task goes back to the scheduler, and the next is chosen.
"""

import asyncio
import logging
from typing import Protocol

from polite.events import Dropped
from polite.frontier.checked_scheduler import CheckedScheduler, SchedulerFailed
from polite.frontier.long_waits import EARLY_S, LONG_S, LongWaits
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.timer_queue import TimerQueue
from polite.frontier.turn_seeker import Outlet, TurnSeeker, ended_by, out_of_reach
from polite.gate.origin_rules import Grounds
from polite.gate.services import Services
from polite.origin import Origin, Target
from polite.pacing.turn import Turn
from polite.task import Task

log = logging.getLogger("polite")

# After so many tasks that end without a permit (refused, dropped), others run.
_AT_A_TIME = 500


class Counter(Outlet, Protocol):
    """Where tasks leave the lanes."""

    @property
    def seats(self) -> int:
        """How many permits would be taken at once, at most."""
        ...

    @property
    def crowded(self) -> bool:
        """Whether other origins wait for a place in memory, and none is free."""
        ...

    def serve(self, task: Task, turn: Turn, grounds: Grounds) -> bool:
        """Give the task out. False when nobody is there any more."""
        ...

    def set_aside(self, origin: Origin, seconds: float, failures: int, *, fetched: bool) -> bool:
        """The origin waits for so long at least. True: its tasks were taken back until then (see Stock)."""
        ...


class Dispatcher:
    """The tasks that may go as soon as their origin's turn comes. After `stop` nothing moves, and `tasks` has all that waits."""

    def __init__(
        self,
        services: Services,
        referee: CheckedScheduler,
        agenda: TimerQueue,
        desk: Counter,
        *,
        max_robots_fetches: int,
        max_robots_tries: int,
    ) -> None:
        self._turns = services.turns
        self._clock = services.clock
        self._referee = referee
        self._waits = LongWaits(services.turns, services.clock, agenda)
        self._desk = desk
        self._approach = TurnSeeker(
            services,
            referee,
            self._waits,
            desk,
            self,
            max_robots_fetches=max_robots_fetches,
            max_robots_tries=max_robots_tries,
        )
        self._rules = self._approach.rules
        self._lanes: dict[Origin, OriginQueue] = {}
        self._woken: list[
            OriginQueue
        ] = []  # of the last step: it will be seen whether they have their turn at once
        self._holding: list[OriginQueue] = []  # turns given in this step
        self._stirred = False

    @property
    def tasks(self) -> list[Task]:
        """All that waits."""
        tasks = self._referee.tasks
        for lane in self._lanes.values():
            tasks.extend(lane.unchecked or ())
            if lane.chosen is not None:
                tasks.append(lane.chosen)
        return tasks

    def shared(self, target: Target) -> Target:
        """The same with the origin that all tasks of its lane share: smaller, and compared by `is`."""
        lane = self._lanes.get(target.origin)
        if lane is None or lane.origin is target.origin:
            return target
        return Target(lane.origin, target.path)

    def add(self, task: Task) -> bool:
        """The task waits, or (False) is refused by the rules, where they are known. Raises SchedulerFailed."""
        origin = task.origin
        lane = self._lanes.get(origin)
        standing = self._rules.known(origin)
        # None: it takes long to find out, or no rules are known; the lane will.
        allowed = None if standing is None else self._rules.allows(task, standing)
        if standing is not None and allowed is False and not out_of_reach(standing):
            self._desk.refused(task, self._rules.refusal(task, standing))
            return False
        fresh = lane is None
        if lane is None:
            lane = self._lanes[origin] = OriginQueue(origin, task.target)
        lane.sample = task.target
        if allowed and standing is not None:
            if fresh:
                lane.grounds = standing.grounds
            lane.doomed = None
            self._rules.schedule(lane, task, standing)
        else:
            lane.put_unchecked(task)
        if fresh:
            self._approach.start(lane)
        return True

    def refuses(self, task: Task) -> bool:
        """Whether the rules, where they are known, do not allow it: then it is refused."""
        standing = self._rules.known(task.origin)
        if standing is None or self._rules.allows(task, standing) is not False or out_of_reach(standing):
            return False
        self._desk.refused(task, self._rules.refusal(task, standing))
        return True

    def spare(self, origin: Origin) -> bool:
        """Whether rules are known that came from the origin, not from its silence: then its tasks are not given up."""
        standing = self._rules.known(origin)
        if standing is None or out_of_reach(standing):
            return False
        lane = self._lanes.get(origin)
        if lane is not None:
            lane.doomed = None
        return True

    def recall(self, origin: Origin, failures: int) -> None:
        """The origin's rules could not be had so often in a row before its lane was forgotten."""
        lane = self._lanes.get(origin)
        if lane is not None:
            lane.failures = failures

    def stir(self) -> None:
        """Something may go now: look at it when all that happens at this moment has happened."""
        if not self._stirred and (self._referee or self._woken):
            self._stirred = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def stop(self) -> None:
        """Ask for nothing any more, and hold nothing."""
        self._approach.stop()
        self._woken.clear()
        self._return_held()
        for lane in self._lanes.values():
            if lane.runner is not None:
                lane.runner.cancel()

    def granted(self, lane: OriginQueue, turn: Turn) -> None:
        """The lane has its turn (approach.Hall). Raises SchedulerFailed; the turn is given back then."""
        lane.turn = turn
        if lane.gone:
            # Its request was cancelled when the turn was there already.
            self._return_turn(lane)
            return
        try:
            if lane.chosen is not None and self._give(lane, lane.chosen):
                return
            self._approach.unchoose(lane)
            if self._desk.seats:
                self._holding.append(lane)
                self._ready(lane)
                return
        except BaseException:
            self._return_turn(lane)
            raise
        # No worker is idle: a turn that is not used must not stand in another request's way.
        self._return_turn(lane)
        self._ready_when_rested(lane)

    def doomed(self, lane: OriginQueue) -> None:
        """Its tasks are at the scheduler, which gives them out one by one, to be dropped (approach.Hall)."""
        self._ready(lane)

    def emptied(self, lane: OriginQueue) -> None:
        """Forget the lane (approach.Hall)."""
        del self._lanes[lane.origin]

    def waits(self, lane: OriginQueue) -> None:
        """Have its place freed, if another origin needs it and the wait is long: in a step of its own (approach.Hall)."""
        if self._desk.crowded:
            asyncio.get_running_loop().call_soon(self.yield_place, lane.origin)

    def yield_place(self, origin: Origin) -> bool:
        """Give the origin's tasks back to where they are kept, if it waits for long. Whether that was done."""
        lane = self._lanes.get(origin)
        if lane is None or not self._idle(lane):
            return False
        wait_s = self._approach.wait_s(lane)
        if wait_s <= LONG_S:
            return False
        # A back-off of robots.txt that is not over yet would be met once more.
        away_s = wait_s if lane.failures else wait_s - EARLY_S
        if not self._desk.set_aside(origin, away_s, lane.failures, fetched=lane.fetched):
            return False
        del self._lanes[origin]
        lane.gone = True
        if lane.runner is not None:
            lane.runner.cancel()
        try:
            self._referee.take_back(origin, lane.scheduled)
        except SchedulerFailed as error:
            self._desk.fail(error)
        return True

    def _idle(self, lane: OriginQueue) -> bool:
        """Whether the lane does nothing but wait for its time, and the scheduler can be asked for its tasks.

        While any origin is ready it cannot. But then no place needs to be freed either: workers are what is short.
        """
        return (
            lane.runner is not None
            and lane.turn is None
            and lane.chosen is None
            and lane.doomed is None
            and not lane.condemned
            and not (lane.scheduled and self._referee)
        )

    def _ready_when_rested(self, lane: OriginQueue) -> None:
        """With a concurrency above 1 the grant itself makes the origin rest, used or not."""
        ready_at = self._turns.outlook(lane.asked_for or lane.sample).ready_at
        if ready_at > self._clock.monotonic():
            self._waits.sleep(lane, ready_at, self._rested)
        else:
            self._ready(lane)

    def _rested(self, lane: OriginQueue) -> None:
        try:
            self._ready(lane)
        except SchedulerFailed as error:
            self._desk.fail(error)

    def _ready(self, lane: OriginQueue) -> None:
        self._referee.ready(lane.origin)
        self.stir()

    def _dispatch(self) -> None:
        """Match those who came for permits with the origins whose turn has come."""
        cut_short = False
        try:
            cut_short = self._match()
        except SchedulerFailed as error:
            self._desk.fail(error)
        except Exception as error:
            log.exception("the frontier failed")
            self._desk.fail(error)
        except BaseException as error:
            self._desk.fail(ended_by(error))
            raise
        finally:
            if not cut_short:
                self._return_held()
            self._stirred = False
        if self._woken or cut_short:
            # They run before this is called: whoever has no turn by then waits for one.
            self.stir()

    def _match(self) -> bool:
        """Whether it was cut short, so that other tasks of the loop run: it goes on in the next step, with the turns it holds."""
        woken, self._woken = self._woken, []
        for lane in woken:
            self._approach.unchoose(lane)
        seats = self._desk.seats
        ended = 0
        while seats and self._referee:
            if ended >= _AT_A_TIME:
                return True
            task = self._referee.next()
            taken = self._seat(self._lanes[task.origin], task)
            seats -= taken
            ended += not taken
        return False

    def _seat(self, lane: OriginQueue, task: Task) -> int:
        """The task goes, or will in the next step. How many permits that takes: none when the task is at its end."""
        if lane.doomed is not None:
            self._desk.dropped(task, Dropped(task.url, lane.doomed, task.tries))
            self._ended(lane, task)
            return 0
        lane.chosen = task
        if lane.turn is not None and lane.grounds is not None:
            ruling = self._rules.ruling(lane, task, lane.grounds)
            if ruling is False:
                self._look_again(lane, task)
                return 0
            if ruling is not True:
                lane.chosen = None
                self._desk.refused(task, ruling)
                self._ended(lane, task)
                return 0
            if self._fits(lane, task, lane.turn) and self._give(lane, task):
                return 1
            self._return_turn(lane)
        at_once = self._approach.at_once(lane)
        if at_once is not None:
            lane.turn = at_once
            self._holding.append(lane)
            if not self._give(lane, task):
                self._return_turn(lane)
                self._approach.unchoose(lane)
                self._ready_when_rested(lane)
            return 1
        self._woken.append(lane)
        self._approach.start(lane)
        return 1

    def _look_again(self, lane: OriginQueue, task: Task) -> None:
        """The rules were replaced since it was scheduled, and the new ones were forgotten, or take long: the lane decides first."""
        lane.chosen = None
        lane.remove(task)
        lane.put_unchecked(task)
        self._return_turn(lane)
        self._go_on(lane)

    def _fits(self, lane: OriginQueue, task: Task, turn: Turn) -> bool:
        """Whether the turn is one at the task's own scopes: those may differ from URL to URL."""
        return (
            task.target is lane.asked_for
            or tuple(dict.fromkeys(self._turns.scopes_of(task.target))) == turn.scopes
        )

    def _give(self, lane: OriginQueue, task: Task) -> bool:
        """Give the task out with the turn that the lane holds."""
        turn = lane.turn
        if lane.grounds is None or turn is None:
            return False
        # A listener that is told of the permit may end the frontier, which gives back what lanes hold.
        lane.turn = None
        if not self._desk.serve(task, turn, lane.grounds):
            lane.turn = turn
            return False
        lane.chosen = None
        lane.fetched = False
        lane.remove(task)
        self._go_on(lane)
        return True

    def _ended(self, lane: OriginQueue, task: Task) -> None:
        """A task of a ready lane is done without a permit: the next one, while the turn lasts."""
        lane.remove(task)
        if lane.scheduled:
            self._referee.ready(lane.origin)
            return
        if lane.doomed is not None:
            lane.begin_anew()
        lane.failures = 0
        self._return_turn(lane)
        self._go_on(lane)

    def _go_on(self, lane: OriginQueue) -> None:
        if lane.waiting:
            self._approach.start(lane)
        else:
            del self._lanes[lane.origin]

    def _return_held(self) -> None:
        """Turns that found no task or no taker in their step."""
        holding, self._holding = self._holding, []
        for lane in holding:
            self._return_turn(lane)

    def _return_turn(self, lane: OriginQueue) -> None:
        turn, lane.turn = lane.turn, None
        if turn is not None:
            self._turns.give_back(turn)
