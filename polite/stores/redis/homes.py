"""HeldHomes: the homes that a process holds, which of them leave when, and HomeUser, the frontier that uses them."""

import hashlib
import heapq
import json
import math
from functools import partial
from itertools import islice
from typing import Protocol

from polite.pacers.homes import Home, TakenHome, Tenant
from polite.ports import Clock, Timer
from polite.stores.redis.changes import Changes, Hold, Leave
from polite.stores.redis.partition import URGENT_S, Partition
from polite.stores.redis.step import StepReply, Taken, TaskRow, microseconds


class HomeUser(Protocol):
    """A frontier. Each method returns at once.

    A home is `used` from `picked` or `news` until the user calls `HeldHomes.release`. The user does that when it has no task of the
    home in memory or in flight, and has sent all ends: only then it leaves. A home that was lost (`home.over`) needs no release.
    """

    @property
    def room(self) -> int:
        """How many homes it can take now."""

    def picked(self, home: Home, origins: list[tuple[str, list[TaskRow]]]) -> None:
        """Use a home that was taken from the line, with the first tasks of its origins. Its note is its last owner's."""

    def news(self, home: Home, origin: str, rows: list[TaskRow]) -> None:
        """Use tasks of a held home that others have put, or that have become ready."""

    def keeps(self, home: Home) -> bool:
        """Whether the home should not be given away now: its robots.txt is being fetched, perhaps over several redirects."""

    def withdrawn(self, home: Home) -> None:
        """Take the home's tasks out of memory, except those in flight. The store is told nothing of them.

        If the home is not `over`, it leaves once the user releases it.
        """

    def stepped(self, partition: int, reply: StepReply) -> None:
        """Note the counts of a reply, and the tasks given up. Called after each batch of any partition."""

    def failed(self, error: Exception) -> None:
        """Stop: no batch will be applied any more."""


# A note begins a text with this. The pacer's state, which is JSON too, has no such member.
_MARK = '{"note":'


def joined(state: str | None, note: str | None) -> str | None:
    """Return one text, or None if there is nothing to hand over."""
    if note is None:
        return state
    return json.dumps({"note": note, "state": state}, separators=(",", ":"), ensure_ascii=False)


def parted(text: str | None) -> tuple[str | None, str | None]:
    """Return the state and the note. A text that another version wrote, and that cannot be read, is a state as it is."""
    if text is None or not text.startswith(_MARK):
        return text, None
    try:
        given = json.loads(text)
        return given["state"], str(given["note"])
    except (ValueError, KeyError, RecursionError):
        return text, None


# How long a home that others want is kept while requests of this process need it.
_QUANTUM_S = 5.0
# How long a gate keeps a home that it does not use, and how many homes at most.
_IDLE_S = 30.0
_MOST_HELD = 10_000
# Idle homes that leave after one reply.
_MOST_SWEPT = 200
# Tasks of a home whose last owner ended without a word that are given out one by one with the server's knowledge.
_SUSPECTS = 32
# After so long (seconds), or after the server was another for so long, nothing suggests that a task ended the home's last owner.
_SUSPECT_S = 600.0


class HeldHomes:
    """Homes by name (homes.Homes). A home leaves only without an open turn: what is left of its delay is not known before.

    Attributes:
        partitions: The crawl's partitions.
        tenant: The pacer. It is set before the first home is taken.
        user: The frontier, if this process has one.
        used: The homes that the frontier uses, by name.

    Args:
        beat_s: For how long a home is not taken again after it was left for others.
    """

    tenant: Tenant

    def __init__(self, clock: Clock, beat_s: float, partitions: tuple[Partition, ...]) -> None:
        self._clock = clock
        self._beat_s = beat_s
        self.partitions: tuple[Partition, ...] = partitions
        self.user: HomeUser | None = None
        self.used: dict[str, Home] = {}
        self._homes: dict[str, Home] = {}
        # Homes that the frontier does not use, and since when they were not `touched`; the one idle longest first.
        self._idle: dict[Home, float] = {}
        # Homes that others want, and that close soon.
        self._to_close: dict[Home, Timer] = {}
        # Homes that were left for others, and until when they are not taken again; the oldest first.
        self._left: dict[str, float] = {}

    def partition(self, home: str) -> Partition:
        """Return the partition that the home belongs to."""
        if len(self.partitions) == 1:
            return self.partitions[0]
        digest = hashlib.blake2b(home.encode(), digest_size=8).digest()
        return self.partitions[int.from_bytes(digest, "big") % len(self.partitions)]

    @property
    def live(self) -> int:
        """How many processes share the crawl, this one included."""
        return max(1 if each.reply is None else each.reply.live for each in self.partitions)

    def held(self, name: str) -> Home | None:
        """Return the home if it may give a turn now: it is good, and not closing."""
        # Hot path: called for each permit.
        home = self._homes.get(name)
        return home if home is not None and home.usable else None

    async def take(self, name: str) -> Home:
        """Wait until the home is held."""
        home = self.held(name)
        if home is not None:
            return home
        partition = self.partition(name)
        partition.stir(URGENT_S)
        return await partition.wanted.wait(name, self._clock.monotonic())

    def rests(self, home: Home, seconds: float) -> None:
        """Write a long delay of the home through."""
        if not home.over:
            hold = Hold(home.name, home.fence, microseconds(seconds), None)
            self.partition(home.name).submit(Changes(holds=[hold]), lazy=True)

    def may_take(self, name: str) -> bool:
        """Return whether a wanted home may be asked for now."""
        return name not in self._homes and self._clock.monotonic() >= self._left.get(name, -math.inf)

    # Turns

    def entered(self, home: Home) -> None:
        """Count a turn that was granted there."""
        # Hot path: called for each permit, as `left` is. `sweep` finds out later which homes are idle.
        home.open += 1
        home.served = True

    def left(self, home: Home) -> None:
        """Count a turn that was released, or given back."""
        home.open -= 1
        if not home.open:
            home.touched = True
            if (home.closing or home.wanted or home.spare) and not home.over:
                self._keep_or_leave(home)

    # Homes that come

    def take_over(self, partition: Partition, taken: Taken) -> None:
        """Hold a home that calls of `take` wait for, unless all were cancelled meanwhile."""
        home = self._hold(partition, taken)
        if home.name not in partition.wanted and not self._needed(home):
            self._leave(home)

    def pick(self, partition: Partition, taken: Taken, origins: list[tuple[str, list[TaskRow]]]) -> None:
        """Hold a home from the line, and give it to the frontier."""
        home = self._hold(partition, taken)
        if self.user is not None:
            self._mark_used(home)
            self.user.picked(home, origins)
        else:
            self._leave(home)

    def bring_news(self, name: str, origin: str, rows: list[TaskRow]) -> None:
        """Give new tasks of a held home to the frontier. If that has ended meanwhile, they are another process's."""
        home = self._homes.get(name)
        if self.user is None:
            self.recall([name])
        # The tasks of a closing home stay in the store: its next owner gets them.
        elif home is not None and not home.closing:
            self._mark_used(home)
            self.user.news(home, origin, rows)

    def _hold(self, partition: Partition, taken: Taken) -> Home:
        older = self._homes.get(taken.home)
        if older is not None:
            self.lose(older)
        age_s = None if taken.age is None else taken.age / 1e6
        state, note = parted(taken.state)
        suspects = _SUSPECTS if not taken.clean and (age_s or 0.0) < _SUSPECT_S else 0
        now = self._clock.monotonic()
        home = Home(taken.home, taken.fence, partition.lease, now, note=note, suspects=suspects)
        self.tenant.take_over(home, TakenHome(taken.free / 1e6, age_s, taken.clean, state))
        partition.homes[home.name] = self._homes[home.name] = home
        self._idle[home] = home.since
        return home

    def _mark_used(self, home: Home) -> None:
        home.used, home.spare = True, False
        self.used[home.name] = home
        self._idle.pop(home, None)

    # Homes that leave

    def release(self, home: Home, rest_s: float = 0.0) -> None:
        """Give back a home that the frontier has nothing of, after all ends were sent. It leaves unless the pacer needs it.

        Args:
            home: The home.
            rest_s: The least time until it may be requested again.
        """
        home.used, home.spare = False, True
        self.used.pop(home.name, None)
        home.free_at = max(home.free_at, self._clock.monotonic() + rest_s)
        if not home.over and not home.open:
            self._keep_or_leave(home)

    def lose(self, home: Home) -> None:
        """Drop a home that is not ours any more."""
        self._forget(home)
        if home.used and self.user is not None:
            self.user.withdrawn(home)

    def close(self) -> None:
        """Leave all homes. Those with an open turn are dropped: the next owner waits from the end of the lease."""
        for home in list(self._homes.values()):
            if home.open:
                self._forget(home)
                self.partition(home.name).drop(home)
            else:
                self._leave(home)

    def recall(self, names: list[str]) -> None:
        """Leave what others want: now, or when no request here needs it, or after a while. Their tasks are the others'."""
        for name in names:
            home = self._homes.get(name)
            if home is None or home.wanted:
                continue
            home.wanted = True
            if not home.closing and not self._needed(home):
                self._leave(home)
            elif not home.closing:
                self._close_at(home.since + _QUANTUM_S, home)

    def _close_at(self, when: float, home: Home) -> None:
        self._to_close[home] = self._clock.call_at(when, partial(self._close_recalled, home))

    def _close_recalled(self, home: Home) -> None:
        del self._to_close[home]
        if self._fetches_rules(home):
            self._close_at(self._clock.monotonic() + self._beat_s, home)
        else:
            self._close_home(home)

    def _fetches_rules(self, home: Home) -> bool:
        """Whether the frontier's robots.txt is being fetched there: the next owner would fetch it again."""
        return home.used and self.user is not None and self.user.keeps(home)

    def share_out(self, partition: Partition, reply: StepReply) -> None:
        """While another process has too few homes, leave what is above the fair share."""
        if not reply.starving:
            return
        staying = [home for home in partition.homes.values() if not home.closing]
        spare = len(staying) - reply.fair
        if spare > 0:
            able = [
                home
                for home in staying
                if (home.used or (home in self._idle and not home.open)) and not self._fetches_rules(home)
            ]
            # What needs no waiting first; then homes whose rules are known, which the next owner finds in the store.
            for home in heapq.nsmallest(spare, able, key=lambda home: (home.open > 0, not home.served)):
                self._close_home(home)

    def sweep(self) -> None:
        """Leave homes that the gate does not use: after a while, or at once if too many are held."""
        now = self._clock.monotonic()
        for name in [name for name, until in self._left.items() if until <= now]:
            del self._left[name]
        for home in list(islice(self._idle, _MOST_SWEPT)):
            if now - self._idle[home] < _IDLE_S and len(self._homes) <= _MOST_HELD:
                return
            if home.touched or self._needed(home):
                home.touched = False
                self._keep_or_leave(home)
            else:
                self._leave(home)

    def _keep_or_leave(self, home: Home) -> None:
        """Decide what becomes of a home without an open turn."""
        if home.used:
            return
        if home.closing or ((home.wanted or home.spare) and not self._needed(home)):
            self._leave(home)
        else:
            self._idle.pop(home, None)
            self._idle[home] = self._clock.monotonic()

    def _close_home(self, home: Home) -> None:
        """Give no new turn there. It leaves at once, or after the last turn and the last task in flight."""
        if home.closing or home.over:
            return
        home.closing = True
        self._idle.pop(home, None)
        if home.used and self.user is not None:
            self.user.withdrawn(home)
        # The frontier may have released it in `withdrawn`.
        if self._homes.get(home.name) is home and not home.open:
            self._keep_or_leave(home)

    def _needed(self, home: Home) -> bool:
        return bool(home.open) or home.used or self.tenant.waits(home.name)

    def _leave(self, home: Home) -> None:
        self._forget(home)
        rest_s, state = self.tenant.hand_over(home.name)
        now = self._clock.monotonic()
        if home.wanted:
            self._left[home.name] = now + self._beat_s
        rest = microseconds(max(rest_s, home.free_at - now))
        leave = Leave(home.name, home.fence, rest, joined(state, home.note))
        self.partition(home.name).submit(Changes(leaves=[leave]))

    def _forget(self, home: Home) -> None:
        home.over = True
        self._idle.pop(home, None)
        if (timer := self._to_close.pop(home, None)) is not None:
            timer.cancel()
        self.used.pop(home.name, None)
        del self._homes[home.name]
        del self.partition(home.name).homes[home.name]
