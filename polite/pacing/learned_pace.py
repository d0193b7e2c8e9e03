"""The pace that is learned from refusals: the default law of a throttle. Pure: what it remembers of an origin is a value.

A host limits its visitors and rarely says how: a bucket of tokens, a fixed or a sliding window, a limit that changes. Refusals
tell it:

- After the first one only the back-off applies, longer for each refusal in a row. The pages until the second one, by the time that
  they took with all waits, are the *goodput*: what the host gives in the long run. How many came faster than that is its *burst*.
- Then a gap that *held* and one that was *refused* enclose the limit. While they are far apart, the gap between them is tried after
  some pages; else one of 3 % less after 110 pages (9 minutes to an hour). A gap has held once it gained more pages than the burst,
  or for half an hour.
- Past the refused gap the limit has perhaps risen: the tries grow, until the delay that policy and site ask for, or a refusal.
  A refusal of a try changes only the refused gap; one at a gap that held changes both, by the goodput since the last. If that does
  not help three times, the pace is not the cause, and all begins anew.

A request that was sent before the last refusal was known is no news. Retry-After is a floor: a refusal after that wait is followed
by the back-off as well.
"""

import math
import struct
from collections.abc import Hashable
from dataclasses import dataclass, fields, replace

from polite.options import instance, number
from polite.origin import Origin
from polite.pace import exponential
from polite.pacing.outcome import Outcome, Pause, ThrottleContext, is_response
from polite.pacing.throttle import DelayThrottle

# A try is so much shorter than the gap that held, and each further step of it is twice that.
_STEP = 0.03
# Pages of a step, the time after which two are enough, and the time after which it has held, whatever it gained (seconds).
_STEP_PAGES, _STEP_S, _HELD_S = 6, 600.0, 1_800.0
# Pages between tries, with the limits of that (seconds).
_PAGES, _LEAST_S, _MOST_S = 110, 550.0, 3_600.0
# After tries that were refused, the time is at least that of the last row of refusals, doubled for each; at most this (seconds).
# The most that are counted, and how many are many.
_RAREST_S, _MOST_FAILED, _OFTEN = 86_400.0, 1 + 2 * 6, 1 + 2 * 3
# The longest gap that is learned, or some times the ordinary delay.
_LONGEST_S, _LONGEST = 600.0, 4.0
# After so many refusals at gaps that held, without one that held newly in between, something else than the pace is the cause.
_IN_VAIN = 3
# A gap that held and one that was refused are far apart above this ratio.
_FAR = 1.15
# The wait after the first refusal of a row may be this part of the row before.
_OF_LAST_ROW = 0.7
# By how much one refusal lengthens a gap that held: at least, and at most.
_LEAST_CHANGE, _MOST_CHANGE = 1 / 0.97, 1 / 0.3
# After one refusal and then none for this time there is no limit; and what was learned so long ago counts no more (seconds).
_SINGLE_S, _KEPT_S = 3_600.0, 7 * 86_400.0
_MOST_ORIGINS = 100_000

_FORMAT = struct.Struct("<BBBHIIId12f")
SIZE = _FORMAT.size
"""Octets that the law remembers of an origin that has refused requests."""


@dataclass(slots=True)
class _Memory:
    """What is remembered of an origin. Gaps and times are seconds.

    Attributes:
        row: Refusals in a row, at most 255. Others read it (`Memories.strikes`): it stays the first octet.
        known: Whether a pace is known (1), since requests were refused in two rows; and 2 for each try in a row that was refused.
        vain: Refusals at a gap that held since the last one that held newly.
        tried: Pages of this step of a try.
        pages: Pages since the last row began.
        refusals: All of them.
        since: When the first one came (Unix time).
        last: When the last outcome came (Unix time).
        due: The time until the next try.
        span: The time since the last row began, without such in which nothing was requested.
        waited: How much of that passed before the row's end.
        given: The delay that the last outcome began.
        gap: The gap in force.
        held: A gap that held.
        refused: The longest gap that was refused; 0 for none.
        burst: Pages that the host gives beyond its rate.
        step: By how much this step of the try is faster than the one before.
        ahead: Pages that the try has gained over `held`.
        ahead_step: Those of its last step.
        owed: The time after which the pages since the last row have come no faster than `held`.
    """

    row: int = 0
    known: int = 0
    vain: int = 0
    tried: int = 0
    pages: int = 0
    refusals: int = 0
    since: int = 0
    last: float = 0.0
    due: float = 0.0
    span: float = 0.0
    waited: float = 0.0
    given: float = 0.0
    gap: float = 0.0
    held: float = 0.0
    refused: float = 0.0
    burst: float = 0.0
    step: float = 0.0
    ahead: float = 0.0
    ahead_step: float = 0.0
    owed: float = 0.0

    @property
    def far(self) -> bool:
        """Whether the limit lies somewhere in a wide interval."""
        return self.refused > 0 and self.held / self.refused > _FAR

    @property
    def next_try(self) -> float:
        """The gap of the next try."""
        return math.sqrt(self.held * self.refused) if self.far else self.held / (1 + _STEP)

    def refuse(self, floor: float) -> None:
        """Learn from the first refusal of a row. `floor` is the least gap."""
        pages, active = max(1, self.pages), self.span - self.waited
        goodput = self.span / pages
        if self.refusals and not self.known:
            self.known, self.refused, self.held = 1, floor, max(goodput, floor)
            self.burst = max(0.0, pages - active / self.held)
            self.owed = max(0.0, pages * self.held - active)
        elif self.gap < self.held:
            self.known = min(self.known + 2, _MOST_FAILED)
            # A host that refuses for a time of its own does so for as long as before.
            self.owed = max(self.ahead * self.held, self.waited if self.known >= _OFTEN else 0.0)
            self.refused = max(self.refused, self.gap)
            self.held = min(self.held, goodput)
        elif self.known:
            self.owed, self.refused = max(0.0, pages * self.held - self.span), self.gap
            self.vain += 1
            self.held = min(max(goodput, self.held * _LEAST_CHANGE), self.held * _MOST_CHANGE)
        longest = max(_LONGEST_S, _LONGEST * floor)
        self.held = min(max(self.held, 1.02 * self.refused), longest) if self.known else 0.0
        if self.vain >= _IN_VAIN:
            self.known, self.vain, self.gap, self.held, self.refused = 0, 0, 0.0, 0.0, 0.0
        self.pages, self.span = 0, 0.0

    def hold(self) -> None:
        """Go at the gap that held, until it is time for a try."""
        self.gap = self.held
        few_s = min(_STEP_PAGES * self.gap, max(2 * self.gap, _STEP_S))
        self.due = few_s if self.far else min(max(_PAGES * self.gap, _LEAST_S), _MOST_S)
        if self.known > 1:
            # Tries that cost much are rare.
            self.due = max(self.due, min(self.waited * 2.0 ** (self.known // 2 - 1), _RAREST_S))

    def begin(self, floor: float) -> None:
        """Try a shorter gap."""
        self.gap, self.step = max(floor, self.next_try), _STEP
        self.tried, self.ahead, self.ahead_step = 0, 0.0, 0.0

    def go_on(self, floor: float) -> None:
        """Try one that is shorter still."""
        self.step, self.tried, self.ahead_step = 2 * self.step, 0, 0.0
        self.gap = max(floor, self.gap / (1 + self.step))

    def page(self, late: float, floor: float) -> bool:
        """Learn from a page that came `late` seconds after the gap in force. Return whether the limit is gone."""
        if self.gap >= self.held:
            if self.due <= 0:
                self.begin(floor)
            return self.held <= floor
        gained = (self.held - self.gap) / (self.held + late)
        self.tried = min(self.tried + 1, 60_000)
        self.ahead += gained
        self.ahead_step += gained
        long = self.tried > 1 and self.tried * self.gap >= _STEP_S
        if self.tried < _STEP_PAGES and not long:
            return False
        beyond = self.gap <= self.refused
        held = self.ahead > self.burst + 1 or self.tried * self.gap >= _HELD_S
        if held and self.gap <= floor:
            return True
        if held and self.refused and not beyond:
            self.held, self.vain, self.known = self.gap, 0, 1
            self.hold()
            if not self.far:
                self.begin(floor)
        elif held:
            # The limit has risen. What held is the step before this one.
            self.vain, self.known = 0, 1
            self.refused, self.held = 0.0, min(self.held, self.gap * (1 + self.step))
            self.ahead = self.ahead_step
            self.go_on(floor)
        elif not self.refused or (beyond and (long or self.ahead_step > self.burst / 4)):
            self.go_on(floor)
        return False


_NAMES = tuple(field.name for field in fields(_Memory))
_GAP = _NAMES.index("gap")


class Memories:
    """What throttles remember of origins that have refused requests; of 100,000 at most. The origin that changed longest ago goes.

    Attributes:
        by_origin: What is remembered, by the origin's text; nearly always empty.
    """

    def __init__(self) -> None:
        self.by_origin: dict[str, bytes] = {}

    def of(self, origin: Origin) -> bytes:
        """Return what is remembered of an origin; nothing if it never refused a request."""
        return self.by_origin.get(origin.text, b"")

    def strikes(self, scope: Hashable) -> int:
        """Return the refusals in a row of an origin, at most 255; 0 for any other scope."""
        return self.row(self.of(scope)) if isinstance(scope, Origin) else 0

    @staticmethod
    def row(memory: bytes) -> int:
        """Return the refusals in a row that a memory counts, at most 255."""
        return memory[0] if memory else 0

    @staticmethod
    def gap_s(memory: bytes) -> float:
        """Return the learned gap that is in force (seconds); 0 if none is."""
        return float(_FORMAT.unpack(memory[:SIZE])[_GAP]) if len(memory) >= SIZE else 0.0

    def restore(self, origin: Origin, memory: bytes) -> None:
        """Remember what was kept elsewhere, unless it is damaged."""
        values = _FORMAT.unpack(memory[:SIZE]) if len(memory) >= SIZE else (math.nan,)
        if not memory or all(0 <= each < math.inf for each in values):
            self.keep(origin, memory)

    def keep(self, origin: Origin, memory: bytes) -> None:
        """Remember this of an origin, instead of what was remembered before."""
        self.by_origin.pop(origin.text, None)
        if memory:
            self.by_origin[origin.text] = memory
        if len(self.by_origin) > _MOST_ORIGINS:
            del self.by_origin[next(iter(self.by_origin))]


class LearnedPace:
    """The default law: the delays of a throttle, lengthened to the pace that an origin's refusals have shown.

    >>> from polite.pacing.throttle import DelayThrottle
    >>> law, memory, wall = LearnedPace(DelayThrottle(random=lambda: 0.0)), b"", 0.0
    >>> for status in (429, 200, 429, 200):
    ...     pause = law.rest(Outcome(status), ThrottleContext(None, 0, wall, memory=memory))
    ...     memory, wall = pause.memory, wall + 20.0
    >>> round(pause.seconds), pause.because
    (18, 'learned 18.5 s from 2 refusals since 00:00 UTC; tries 4.3 s at 00:02')

    Args:
        throttle: What the site and the policy ask for, which is the floor.
        backoff: The first back-off after a refusal that came in spite of Retry-After (seconds).
        most: The limit for such back-offs (seconds).
        learn: Whether a pace is learned. If not, only refusals in a row are counted.

    Raises:
        InvalidOption: `backoff` or `most` is not a finite number >= 0, or the throttle is none.
    """

    def __init__(
        self, throttle: DelayThrottle, *, backoff: float = 10.0, most: float = 3_600.0, learn: bool = True
    ) -> None:
        instance("LearnedPace: throttle", throttle, DelayThrottle)
        self._throttle = throttle
        self._backoff = number("LearnedPace: backoff", backoff)
        self._most = number("LearnedPace: most", most)
        self._learn = learn

    def rest(self, outcome: Outcome, context: ThrottleContext, *, struck: bool = False) -> Pause:
        """Return the delay that starts with this outcome, and what is to be remembered.

        Args:
            outcome: The outcome.
            context: What else the delay depends on, with the memory that the last Pause had.
            struck: Whether the outcome counts as a refusal, whatever the throttle says.
        """
        known = self._known(context)
        # A wall clock that was set back tells nothing: say that the delay is over.
        passed = context.wall - known.last if context.wall >= known.last else known.given
        late_news = known.row > 0 and context.elapsed_s > passed
        strikes = known.row - late_news
        if strikes != context.strikes:
            context = context._replace(strikes=strikes)
        pause = self._throttle.rest(outcome, context)
        if struck and not pause.strike:
            pause = replace(pause, strike=True)
        if not (known.refusals or pause.strike):
            return pause
        if late_news or not (pause.strike or is_response(outcome)):
            return self._answer(known, pause, context.memory)
        late = max(0.0, passed - known.given)
        known.span += min(passed, 1.5 * known.given + 1) if known.refusals else 0.0
        known.due, known.last = max(0.0, known.due - passed), context.wall
        if pause.strike:
            return self._refused(known, outcome, context, pause)
        known.pages += 1
        gone = known.span - known.waited > _SINGLE_S
        if known.row:
            known.row, known.waited, gone = 0, known.span, False
            known.hold()
        elif known.known:
            gone = known.page(late, max(self._throttle.least_s(context), 0.001))
        if gone or not self._learn:
            return pause
        known.given = max(known.gap, pause.seconds)
        return self._answer(known, pause, _octets(known))

    def _known(self, context: ThrottleContext) -> _Memory:
        # A user's throttle that is gone by now may have left something behind it.
        octets = context.memory[:SIZE]
        known = _Memory(*_FORMAT.unpack(octets)) if len(octets) == SIZE else _Memory()
        return known if context.wall - known.last <= _KEPT_S else _Memory()

    def _refused(self, known: _Memory, outcome: Outcome, context: ThrottleContext, pause: Pause) -> Pause:
        row, seconds = known.row, pause.seconds
        if not row:
            known.refuse(max(self._throttle.least_s(context), 0.001))
        known.since = known.since or max(0, int(context.wall))
        known.row, known.refusals = min(row + 1, 255), known.refusals + 1
        if row and outcome.retry_after_s is not None:
            seconds = max(seconds, exponential(self._backoff, row - 1, self._most))
        most = self._most if row else min(_OF_LAST_ROW * known.waited, self._most)
        seconds = max(seconds, min(known.owed, most))
        known.given = max(seconds, known.gap)
        because = pause.because
        if known.given > pause.seconds:
            because = f"{because}; made {_shown(known.given)} by what refusals have shown"
        return Pause(known.given, because, strike=True, memory=_octets(known))

    def _answer(self, known: _Memory, pause: Pause, memory: bytes) -> Pause:
        if known.gap <= pause.seconds:
            return replace(pause, memory=memory)
        times = "1 refusal" if known.refusals == 1 else f"{known.refusals} refusals"
        because = f"learned {_shown(known.gap)} from {times} since {_at(known.since)} UTC"
        tries = f"tries {_shown(known.next_try)} at {_at(known.last + known.due)}"
        because += f"; a try: {_shown(known.held)} held" if known.gap < known.held else f"; {tries}"
        return Pause(known.gap, because, pause.strike, memory)


def _octets(known: _Memory) -> bytes:
    values = [getattr(known, name) for name in _NAMES]
    return _FORMAT.pack(*(min(each, 2**32 - 1 if type(each) is int else 1e15) for each in values))


def _shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def _at(wall: float) -> str:
    minutes = int(wall // 60) % 1_440
    return f"{minutes // 60:02}:{minutes % 60:02}"
