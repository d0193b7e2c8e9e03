"""How a lane comes to its turn: its origin's rules first, then a turn, and allowed still; or it is put off, or given up."""

import asyncio
import logging
from collections import deque
from functools import partial
from typing import Protocol

from polite.back_off import exponential
from polite.errors import GateClosed, Overloaded
from polite.events import Dropped, Event, OriginPostponed, Refused
from polite.frontier.checked_scheduler import CheckedScheduler, SchedulerFailed
from polite.frontier.long_waits import EARLY_S, LONG_S, LongWaits
from polite.frontier.origin_queue import OriginQueue
from polite.frontier.sweep import Sweep
from polite.frontier.task_rules import TaskRules
from polite.gate.background import start_later
from polite.gate.origin_rules import Grounds, OriginRules
from polite.gate.services import Services
from polite.origin import Origin
from polite.pacing.turn import Turn
from polite.robots.reason import Reason
from polite.task import Task

log = logging.getLogger("polite")

# After so many tasks dropped, others run.
_AT_A_TIME = 500
# Too many wait already, here or in the gate: ask again after so long (seconds).
_OVERLOADED_S = 5.0
# What fails without saying for how long is put off so long, and twice as long each time, up to an hour (seconds).
_FIRST_S, _LONGEST_S = 5.0, 3_600.0


class Outlet(Protocol):
    """Where tasks go that get no permit."""

    def refused(self, task: Task, event: Refused) -> None:
        """The rules do not allow it: it is done."""
        ...

    def dropped(self, task: Task, event: Dropped) -> None:
        """It is given up."""
        ...

    def put_off(self, origin: Origin, seconds: float, failures: int) -> bool:
        """No rules could be had, for the `failures`th time in a row. True: the lane's tasks were taken back until then."""
        ...

    def given_up(self, origin: Origin, because: str) -> None:
        """All tasks of the origin are to be dropped, those that the lane does not have too."""
        ...

    def tell(self, event: Event) -> None: ...

    def fail(self, error: Exception) -> None:
        """Nothing more can be given out."""
        ...


class Hall(Protocol):
    """Where lanes arrive."""

    def granted(self, lane: OriginQueue, turn: Turn) -> None:
        """The lane has its turn."""
        ...

    def doomed(self, lane: OriginQueue) -> None:
        """All tasks of the lane that are at the scheduler are to be dropped (`lane.doomed` says why)."""
        ...

    def emptied(self, lane: OriginQueue) -> None:
        """The lane has no tasks any more."""
        ...

    def waits(self, lane: OriginQueue) -> None:
        """The lane waits now, perhaps for long."""
        ...


class TurnSeeker:
    """One request for each lane: never more of an origin wait in the pacer, however many tasks it has."""

    def __init__(
        self,
        services: Services,
        referee: CheckedScheduler,
        waits: LongWaits,
        outlet: Outlet,
        hall: Hall,
        *,
        max_robots_fetches: int,
        max_robots_tries: int,
    ) -> None:
        self._origins = services.origins
        self._turns = services.turns
        self._clock = services.clock
        self._began = services.clock.wall()
        self._referee = referee
        self._waits = waits
        self._outlet = outlet
        self.rules = TaskRules(services, referee, outlet.refused)
        self._hall = hall
        self._max_opening = max_robots_fetches
        self._max_robots_tries = max_robots_tries
        self._opening: set[OriginQueue] = set()  # those that wait for their origin's rules
        self._unopened: deque[OriginQueue] = deque()  # and those for which there is no room among them
        self._passing_on = False
        self._stopped = False
        self._sweep = Sweep(
            services.clock, lambda: self._opening, self._doze, needed=lambda: bool(self._unopened)
        )

    def start(self, lane: OriginQueue) -> None:
        """Ask for what the lane needs next: rules, if there is room to ask for them, and a turn."""
        if self._stopped or lane.gone:
            return
        lane.runner = None
        known = self.rules.known(lane.origin)
        if known is None and not self._settled(lane):
            if self._sleeps(lane):
                return
            if len(self._opening) >= self._max_opening:
                self._unopened.append(lane)
                self._sweep.stir()
                return
            self._opening.add(lane)
            lane.opening = True
        elif self._called_back(lane, known):
            return
        lane.begun = False
        lane.runner = runner = start_later(lambda: self._bring(lane))
        runner.add_done_callback(lambda runner: self._end_unbegun(lane, runner))

    def _sleeps(self, lane: OriginQueue) -> bool:
        """Whether its robots.txt cannot be asked for yet for long: then it takes no opening slot before that time."""
        wait_s = self._waits.seconds(lane, known=False)
        if wait_s <= LONG_S:
            return False
        self._waits.sleep(lane, self._clock.monotonic() + wait_s - EARLY_S, self.start)
        self._hall.waits(lane)
        return True

    def wait_s(self, lane: OriginQueue) -> float:
        """How long it will be until the lane's turn may come; 0 while its origin is being asked for robots.txt.

        A fetch that waits for the turn of a redirect is under way: cancelled each time, it would never come to its end.
        """
        if self._origins.asking(lane.origin) or (lane.opening and self._waits.asking(lane)):
            return 0.0
        return self._waits.seconds(lane, known=not lane.opening)

    def _doze(self, lane: OriginQueue) -> None:
        """Have a lane that waits for long leave its opening slot: it asks again when its time is near."""
        if lane.opening and lane.runner is not None and self.wait_s(lane) > LONG_S:
            lane.dozes = True
            lane.runner.cancel()

    def at_once(self, lane: OriginQueue) -> Turn | None:
        """The turn for the task that was chosen, if nothing needs to be waited for: most often so, for its origin was ready."""
        grounds, task = lane.grounds, lane.chosen
        if grounds is None or task is None or lane.unchecked or lane.failures:
            return None
        if not self._newest(grounds, self.rules.known(lane.origin)):
            return None
        if self.rules.ruling(lane, task, grounds) is not True:
            return None
        lane.asked_for = task.target
        try:
            return self._turns.take_now(task.target, pace=grounds.pace)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - as in _called_back
            return None

    def unchoose(self, lane: OriginQueue) -> None:
        """What was chosen goes back to the scheduler: it did not go at once."""
        task, lane.chosen = lane.chosen, None
        if task is not None:
            self._referee.add(task)

    def stop(self) -> None:
        """Start no more. Those under way are their lanes' runners."""
        self._stopped = True
        self._unopened.clear()
        self._sweep.stop()

    def _newest(self, grounds: Grounds, known: OriginRules | None) -> bool:
        """Whether those are the grounds of what is known; rules that the gate has forgotten are good while they hold."""
        return self._origins.still_valid(grounds) if known is None else known.grounds is grounds

    def _settled(self, lane: OriginQueue) -> bool:
        """Whether the lane needs no rules before its next turn: what it was told holds, and all its tasks are decided."""
        if lane.unchecked or lane.failures or lane.recheck or lane.grounds is None:
            return False
        if lane.chosen is not None and not lane.ruling(lane.chosen):
            return False
        return lane.grounds.meaning == lane.meaning and self._origins.still_valid(lane.grounds)

    def _called_back(self, lane: OriginQueue, known: OriginRules | None) -> bool:
        """The short way, where the rules are known and nothing is to be checked: no task waits, the turn calls back."""
        grounds = lane.grounds
        if grounds is None or lane.unchecked or lane.failures or lane.recheck or lane.chosen is not None:
            return False
        if not self._newest(grounds, known):
            return False
        lane.asked_for = lane.sample
        back = partial(self._arrived, lane, grounds)
        try:
            call = self._turns.take_later(lane.sample, back, pace=grounds.pace, first=lane.renewed)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the long way meets the same, and says so in a step of its own
            return False
        if call is None:
            return False
        lane.runner = call
        return True

    def _arrived(self, lane: OriginQueue, grounds: Grounds, turn: Turn, error: Exception | None) -> None:
        if error is not None:
            self._outlet.fail(error)
            return
        try:
            if self._usable(lane, grounds, turn):
                self._hall.granted(lane, turn)
            else:
                self.start(lane)
        except SchedulerFailed as failure:
            self._outlet.fail(failure)
        except Exception as failure:
            log.exception("the frontier failed")
            self._outlet.fail(failure)

    async def _bring(self, lane: OriginQueue) -> None:
        lane.begun = True
        try:
            turn = await self._turn(lane)
            if turn is not None:
                self._hall.granted(lane, turn)
        except asyncio.CancelledError as error:
            self._put_aside(lane, error)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the lane must not stand still for it
            self._put_aside(lane, error)
        except GeneratorExit:
            raise
        except BaseException as error:
            self._outlet.fail(ended_by(error))
            raise

    def _end_unbegun(self, lane: OriginQueue, runner: "asyncio.Task[None]") -> None:
        """A task that is cancelled before its first step runs nothing of itself."""
        if lane.runner is runner and runner.cancelled() and not lane.begun:
            self._put_aside(lane, asyncio.CancelledError())

    def _put_aside(self, lane: OriginQueue, error: BaseException) -> None:
        """The lane did not come to its turn. What was chosen goes back to the scheduler, which may fail at that."""
        self._opened(lane)
        if lane.gone:
            return
        try:
            self._answer(lane, error)
        except SchedulerFailed as failure:
            self._outlet.fail(failure)

    def _answer(self, lane: OriginQueue, error: BaseException) -> None:
        match error:
            case asyncio.CancelledError():
                # By somebody who cancelled every task that he found: the lane must not stand still for that.
                dozes, lane.dozes = lane.dozes, False
                if dozes:
                    self.unchoose(lane)
                    self.start(lane)
                elif not self._stopped:
                    self._put_off(lane, _FIRST_S, "cancelled from outside")
            case GateClosed() | SchedulerFailed():
                self._outlet.fail(error)
            case Overloaded():
                self._put_off(lane, _OVERLOADED_S, str(error))
            case _:
                # A store that fails, a scope that cannot be worked out: denied for now, as anything that is not understood.
                log.error("no turn could be asked for at %s", lane.origin, exc_info=error)
                seconds = exponential(_FIRST_S, lane.failures, _LONGEST_S)
                self._missed(lane, seconds, type(error).__name__, lasts=False)

    async def _turn(self, lane: OriginQueue) -> Turn | None:
        """Allowed first, then the turn, and allowed still: as Gate._enter has it. None when the lane is put off, or empty."""
        while (grounds := await self._cleared(lane)) is not None:
            if not lane.scheduled:
                self._hall.emptied(lane)
                return None
            lane.asked_for = lane.sample if lane.chosen is None else lane.chosen.target
            self._hall.waits(lane)
            turn = await self._turns.take(lane.asked_for, pace=grounds.pace, first=lane.renewed)
            if self._usable(lane, grounds, turn):
                return turn
        return None

    async def _cleared(self, lane: OriginQueue) -> Grounds | None:
        """Decide about the tasks that are undecided, and return on what grounds; None when the lane is put off.

        The rules, which may be large, are kept for no longer than this takes.
        """
        while True:
            undecided = await self.rules.undecided(lane) if lane.recheck else ()
            known = self.rules.known(lane.origin)
            if known is None and self._settled(lane):
                self._opened(lane)
                self.rules.refuse_chosen(lane)
                return lane.grounds
            standing = await self._standing(lane, known)
            if (standing.grounds is not lane.grounds or lane.failures) and out_of_reach(standing):
                self._out_of_reach(lane, standing, known=standing is known)
                return None
            lane.grounds, lane.failures = standing.grounds, 0
            lane.renew(standing.meaning)
            if await self.rules.check(lane, standing, undecided):
                return standing.grounds
            lane.renewed = True

    def _out_of_reach(self, lane: OriginQueue, standing: OriginRules, *, known: bool) -> None:
        # The same answer, met once more a moment too early, is no second failure.
        again = standing.grounds is lane.grounds or (known and _counted(lane, standing))
        lane.grounds = standing.grounds
        lane.failures -= again
        seconds = max(1.0, standing.fresh_until - self._clock.wall())
        reason = standing.snapshot.access.reason
        # What an earlier run met may have been decided by other options: that is tried again.
        lasts = not reason.may_pass and standing.snapshot.fetched_at >= self._began
        self._missed(lane, seconds, reason.name, lasts=lasts)

    def _usable(self, lane: OriginQueue, grounds: Grounds, turn: Turn) -> bool:
        """Whether the rules still decide now that the turn has come. Otherwise it is given back, once to have them renewed."""
        holds = False
        try:
            holds = self._origins.still_valid(grounds, renewed=lane.renewed)
        finally:
            lane.renewed = not holds
            if not holds:
                self._turns.give_back(turn)
        return holds

    async def _standing(self, lane: OriginQueue, known: OriginRules | None) -> OriginRules:
        """The rules that hold; when they are there, or cannot be had, the next lane may ask for its own."""
        try:
            if known is not None:
                return known
            lane.fetched = True
            return await self._origins.learn(lane.origin)
        finally:
            self._opened(lane)

    def _opened(self, lane: OriginQueue) -> None:
        """It waits for rules no longer: the next one may."""
        if lane.opening:
            lane.opening = False
            self._opening.discard(lane)
            self._open_more()

    def _open_more(self) -> None:
        """Start lanes until all slots are taken: one whose rules are known by now takes none, and ends no chain."""
        if self._passing_on:
            # A task that runs its first step at once (eager tasks) may end its opening within the loop below, which goes on.
            return
        self._passing_on = True
        try:
            while self._unopened and len(self._opening) < self._max_opening:
                self.start(self._unopened.popleft())
        finally:
            self._passing_on = False

    # What could not be had.

    def _missed(self, lane: OriginQueue, seconds: float, because: str, *, lasts: bool) -> None:
        """Once more without rules: later, or, when it was the last time or waiting does not help, never."""
        lane.failures += 1
        if lane.failures < self._max_robots_tries and not lasts:
            self._put_off(lane, seconds, because)
            return
        self.unchoose(lane)
        self._outlet.given_up(lane.origin, because)
        lane.doomed = because
        lane.condemned = len(lane.unchecked or ())
        self._drop_some(lane, because)

    def _drop_some(self, lane: OriginQueue, because: str) -> None:
        """Drop what waited unchecked when the lane was given up; what was put since is not among it, and asks for rules anew.

        Meanwhile the origin may have answered somebody else: then `doomed` was taken back, and the rest is checked as ever.
        """
        dropped = 0
        while lane.unchecked and lane.condemned and lane.doomed is not None and not self._stopped:
            if dropped >= _AT_A_TIME:
                asyncio.get_running_loop().call_soon(self._drop_more, lane, because)
                return
            dropped += 1
            lane.condemned -= 1
            self._drop(lane.unchecked.popleft(), because)
        lane.condemned = 0
        if self._stopped:
            return
        if lane.doomed is not None and lane.scheduled:
            self._hall.doomed(lane)
        elif lane.waiting:
            lane.begin_anew()
            self.start(lane)
        else:
            self._hall.emptied(lane)

    def _drop_more(self, lane: OriginQueue, because: str) -> None:
        try:
            self._drop_some(lane, because)
        except SchedulerFailed as failure:
            self._outlet.fail(failure)
        except Exception as failure:
            log.exception("the frontier failed")
            self._outlet.fail(failure)
        except BaseException as error:
            self._outlet.fail(ended_by(error))
            raise

    def _put_off(self, lane: OriginQueue, seconds: float, because: str) -> None:
        self.unchoose(lane)
        self._outlet.tell(OriginPostponed(str(lane.origin), lane.waiting, seconds, because))
        if not lane.scheduled and self._outlet.put_off(lane.origin, seconds, lane.failures):
            self._hall.emptied(lane)
        else:
            self._waits.sleep(lane, self._clock.monotonic() + seconds, self.start)
            self._hall.waits(lane)

    def _drop(self, task: Task, because: str) -> None:
        self._outlet.dropped(task, Dropped(task.url, because, task.tries))


def _counted(lane: OriginQueue, standing: OriginRules) -> bool:
    """Whether a lane that was forgotten and came back has this failure among those it counted before."""
    return lane.grounds is None and standing.snapshot.failures <= lane.failures


def ended_by(error: BaseException) -> Exception:
    """What a frontier fails with when something of the user's raised what is no Exception, as pytest.fail does."""
    failure = RuntimeError(f"the frontier was ended by {error!r}")
    failure.__cause__ = error
    return failure


def out_of_reach(standing: OriginRules) -> bool:
    """Whether all is denied because robots.txt could not be had, which may pass."""
    rules = standing.rules
    return not rules.allows("/") and rules.decide("/").reason is Reason.UNREACHABLE
