"""RulesReader: from a robots.txt result to the rules that bind our agent; a large file is read in a thread."""

import asyncio

from polite.gate.origin_rules import OriginRules
from polite.gate.turns import Turns
from polite.origin import Origin
from polite.ports import Clock
from polite.robots.agent import UserAgent
from polite.robots.fetching.result import Found, Unavailable, Unreachable
from polite.robots.fetching.snapshot import Snapshot
from polite.robots.parse import PARSE_SIZE_FOR_THREAD, parse
from polite.robots.policy import RobotsPolicy
from polite.robots.rules import RuleSet

_BEING_READ = "its robots.txt is being read"


class RulesReader:
    """Reads files for one agent, the large ones one at a time in a thread."""

    def __init__(self, agent: UserAgent, turns: Turns, clock: Clock, policy: RobotsPolicy) -> None:
        self._agent = agent
        self._turns = turns
        self._clock = clock
        self._policy = policy
        self._reading = asyncio.Semaphore(1)

    async def kept(self, origin: Origin, access: Found) -> Found:
        """Return a file as it is kept: compressed, which takes milliseconds if it is large."""
        if access.length <= PARSE_SIZE_FOR_THREAD:
            return access.kept()
        # As in `_rules_of`.
        with self._turns.renewed_delay(origin.robots, _BEING_READ):
            async with self._reading:
                return await asyncio.to_thread(access.kept)

    async def rules_of(
        self, origin: Origin, snapshot: Snapshot, before: OriginRules | None = None
    ) -> OriginRules:
        """Return the rules of a snapshot. A file with the same octets as `before` is not parsed again.

        A failure whose good copy is still valid was a refresh ahead of time.
        """
        good = snapshot.last_good
        if good is not None and snapshot.failures and good.fresh(self._clock.wall()):
            return (await self.rules_of(origin, good, before)).attempted(snapshot)
        access, reason = snapshot.effective(self._policy, self._clock.wall())
        match access:
            case Found() if before is not None and before.read_from(access):
                rules = before.rules
            case Found() if access.length > PARSE_SIZE_FOR_THREAD:
                # One at a time: each thread that computes takes the interpreter from the loop for 5 ms at a time.
                # The file's pace is known at the end only: until then the origin grants no turn.
                with self._turns.renewed_delay(origin.robots, _BEING_READ):
                    async with self._reading:
                        rules = await asyncio.to_thread(lambda: self._read(access).prepare())
            case Found():
                rules = self._read(access)
            case Unavailable():
                rules = RuleSet.allow_all(reason, access=access, dialect=self._policy.dialect)
            case Unreachable():
                rules = RuleSet.deny_all(reason, access=access, dialect=self._policy.dialect)
        return OriginRules.of(rules, snapshot, ahead=self._policy.refresh_ahead, skew=skew(self._clock))

    def _read(self, access: Found) -> RuleSet:
        return parse(access.body, dialect=self._policy.dialect).rules_for(self._agent)


def skew(clock: Clock) -> float:
    """Return the monotonic clock minus the wall clock."""
    return clock.monotonic() - clock.wall()
