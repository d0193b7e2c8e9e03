"""Random requests to a turnstile beside a slow, obvious model."""

import math
from collections import defaultdict
from itertools import permutations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from polite.pacing.turn import Turn, TurnState
from polite.pacing.turnstile import Turnstile
from tests.support import examples

LIMITS = {"a": 1, "b": 1, "c": 2, "ip": 2, "all": 3}
PROVISIONAL_S = 1.5
NARROW_TO_BROAD = [
    *(("a",), ("b",), ("c",), ("all",), ("a", "ip"), ("b", "ip"), ("c", "all"), ("a", "all"), ("ip", "all")),
    *(("a", "ip", "all"), ("b", "ip", "all")),
]
ANY_ORDER = [order for scopes in (("a", "b"), ("b", "c", "ip")) for order in permutations(scopes)]

times = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 5.0, 30.0])
# A machine that slept for an hour, a week, or longer than anybody would think.
sleeps = st.sampled_from([3_600.0, 604_800.0, 1e9])


class Lives(RuleBasedStateMachine):
    """The model: when each scope is ready, and who is where. It decides nothing; it judges what was given."""

    orders = NARROW_TO_BROAD
    first_come_first_served = True

    def __init__(self) -> None:
        super().__init__()
        self.limits = dict(LIMITS)
        self.provisional_s = dict.fromkeys(LIMITS, PROVISIONAL_S)
        self.turnstile = Turnstile(
            concurrency=self.limits.__getitem__, provisional_s=self.provisional_s.__getitem__
        )
        self.now = 100_000.0
        self.ready_at: dict[str, float] = defaultdict(lambda: -math.inf)
        self.waiting: dict[Turn, tuple[bool, int]] = {}
        self.open: list[Turn] = []
        self.settled: set[Turn] = set()
        self.asked = 0

    def places(self, scope: str) -> int:
        return sum(scope in turn.scopes for turn in self.open)

    def busy(self, scope: str, now: float) -> bool:
        return self.ready_at[scope] > now or self.places(scope) >= self.limits[scope]

    def given(self, turn: Turn, now: float, place: tuple[bool, int]) -> None:
        assert (turn.state, turn.granted_at) == (TurnState.OPEN, now)
        for scope in turn.scopes:
            assert not self.busy(scope, now), f"{scope} was given too soon"
        self.open.append(turn)
        for scope in turn.scopes:
            if self.limits[scope] > 1:
                self.ready_at[scope] = max(self.ready_at[scope], self.now + self.provisional_s[scope])
        if self.first_come_first_served:
            ahead = [o for t, o in self.waiting.items() if t.scopes == turn.scopes and o[0] == place[0]]
            assert all(place < other for other in ahead), "overtaken by an equal that asked later"

    def hand_out(self, now: float) -> None:
        for turn in self.turnstile.due(now):
            self.given(turn, now, self.waiting.pop(turn))
        # Nobody waits who could go: each waits for a busy scope, or stands behind another that does.
        for turn in self.waiting:
            others = {scope for other in self.waiting if other is not turn for scope in other.scopes}
            assert any(self.busy(scope, now) or scope in others for scope in turn.scopes), "left waiting"
        assert self.turnstile.queue.next_at is None or self.turnstile.queue.next_at > now

    @rule(data=st.data(), urgent=st.booleans())
    def request(self, data: st.DataObject, urgent: bool) -> None:
        scopes, now = data.draw(st.sampled_from(self.orders)), self.now
        self.asked += 1
        place = (not urgent, self.asked)
        turn = self.turnstile.request(scopes, now, urgent=urgent)
        assert turn.scopes == scopes
        if turn.state is TurnState.OPEN:
            self.given(turn, now, place)
        else:
            self.waiting[turn] = place

    @precondition(lambda self: self.open)
    @rule(data=st.data(), pause_s=times, refused=st.booleans())
    def settle(self, data: st.DataObject, pause_s: float, refused: bool) -> None:
        turn = data.draw(st.sampled_from(self.open))
        self.turnstile.settle(turn, self.now, pause_s, refused=refused)
        for scope in turn.scopes:
            self.ready_at[scope] = max(self.ready_at[scope], self.now + pause_s)
        self.settled.add(turn)

    @precondition(lambda self: self.settled.intersection(self.open))
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from([turn for turn in self.open if turn in self.settled]))
        self.turnstile.release(turn, self.now)
        self.open.remove(turn)

    @precondition(lambda self: self.waiting or self.open)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from([*self.waiting, *self.open]))
        self.turnstile.cancel(turn, self.now)
        if turn in self.waiting:
            del self.waiting[turn]
        else:
            self.open.remove(turn)

    @rule(scope=st.sampled_from(sorted(LIMITS)), ahead_s=times)
    def hold(self, scope: str, ahead_s: float) -> None:
        self.turnstile.hold(scope, self.now + ahead_s)
        self.ready_at[scope] = max(self.ready_at[scope], self.now + ahead_s)

    @rule(seconds=st.one_of(times, sleeps))
    def pass_time(self, seconds: float) -> None:
        """After a sleep all delays are over; what comes then comes one by one all the same (see `given`)."""
        self.now += seconds
        self.hand_out(self.now)

    @rule(
        scope=st.sampled_from(sorted(LIMITS)),
        limit=st.sampled_from([3, 2, 1]),
        provisional_s=st.sampled_from([0.0, 1.5, 30.0]),
        every=st.booleans(),
    )
    def change_limits(self, scope: str, limit: int, provisional_s: float, every: bool) -> None:
        """A policy is replaced: no rest gets shorter, and whoever may go now too goes after a rest."""
        now, more = self.now, limit > self.limits[scope]
        self.limits[scope], self.provisional_s[scope] = limit, provisional_s
        self.turnstile.relimit(now, None if every else [scope])
        if more and self.places(scope):
            self.ready_at[scope] = max(self.ready_at[scope], self.now + provisional_s)
        self.hand_out(self.now)

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.turnstile.queue.waiting == len(self.waiting)
        assert all(turn.state is TurnState.WAITING for turn in self.waiting)

    @invariant()
    def the_outlook_agrees(self) -> None:
        for scope in LIMITS:
            outlook = self.turnstile.outlook((scope,), self.now)
            assert outlook.ready_at == max(self.now, self.ready_at[scope])
            assert outlook.scope is None or outlook.open == self.places(scope)
            assert outlook.scope is not None or not self.busy(scope, self.now)
            assert outlook.since is None or outlook.since <= self.now

    def teardown(self) -> None:
        """Everybody gets a turn in the end."""
        for _ in range(2 * len(self.waiting) + 2):
            for turn in list(self.open):
                self.turnstile.settle(turn, self.now, 0.0)
                self.turnstile.release(turn, self.now)
                self.open.remove(turn)
            self.now = max([self.now, *self.ready_at.values()])
            self.hand_out(self.now)
        assert not self.waiting


class LivesInAnyOrder(Lives):
    """Scopes named in opposite orders: who goes first is not promised then, that everybody goes is."""

    orders = NARROW_TO_BROAD + ANY_ORDER
    first_come_first_served = False


TestLives = Lives.TestCase
TestLives.settings = settings(examples(150, fast=15), stateful_step_count=50)
TestLivesInAnyOrder = LivesInAnyOrder.TestCase
TestLivesInAnyOrder.settings = settings(examples(150, fast=15), stateful_step_count=50)
