"""RulesReader: from a robots.txt result to the rules that bind our agent; a large file is read in a thread."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, TypeVar

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

T = TypeVar("T")

_BEING_READ = "its robots.txt is being read"


class ReadFile(NamedTuple):
    """A file that was fetched, as it is kept in memory, and the rules that were read from it."""

    file: Found
    rules: RuleSet


class RulesReader:
    """Reads files for one agent, the large ones one at a time in a thread."""

    def __init__(self, agent: UserAgent, turns: Turns, clock: Clock, policy: RobotsPolicy) -> None:
        self._agent = agent
        self._turns = turns
        self._clock = clock
        self._policy = policy
        self._reading = asyncio.Semaphore(1)

    async def read(self, origin: Origin, fetched: Found, before: OriginRules | None) -> ReadFile:
        """Compress and parse a file that was fetched, in one step. The same octets as `before` are not parsed again."""
        return await self._apart(origin, fetched, lambda: self._read(fetched, before))

    async def rules_of(
        self,
        origin: Origin,
        snapshot: Snapshot,
        before: OriginRules | None = None,
        *,
        read: ReadFile | None = None,
    ) -> OriginRules:
        """Return the rules of a snapshot. A file with the same octets as `before` is not parsed again.

        A failure whose good copy is still valid was a refresh ahead of time.

        Args:
            origin: The origin.
            snapshot: What is known of its robots.txt.
            before: The rules that were in force.
            read: What `read` returned for the latest result, if that is a file.
        """
        good = snapshot.last_good
        if good is not None and snapshot.failures and good.fresh(self._clock.wall()):
            return (await self.rules_of(origin, good, before)).attempted(snapshot)
        access, reason = snapshot.effective(self._policy, self._clock.wall())
        match access:
            case Found() if read is not None and read.file is access:
                rules = read.rules
            case Found() if before is not None and before.read_from(access):
                rules = before.rules
            case Found():
                rules = await self._apart(origin, access, lambda: self._parsed(access))
            case Unavailable():
                rules = RuleSet.allow_all(reason, access=access, dialect=self._policy.dialect)
            case Unreachable():
                rules = RuleSet.deny_all(reason, access=access, dialect=self._policy.dialect)
        return OriginRules.of(rules, snapshot, ahead=self._policy.refresh_ahead, skew=skew(self._clock))

    async def _apart(self, origin: Origin, file: Found, work: Callable[[], T]) -> T:
        """Call `work`, which compresses or parses the file; in a thread if that may take milliseconds."""
        if file.length <= PARSE_SIZE_FOR_THREAD:
            return work()
        # One at a time: each thread that computes takes the interpreter from the loop for 5 ms at a time.
        # The file's pace is known at the end only: until then the origin grants no turn.
        with self._turns.renewed_delay(origin.robots, _BEING_READ):
            async with self._reading:
                return await asyncio.to_thread(work)

    def _read(self, fetched: Found, before: OriginRules | None) -> ReadFile:
        kept = fetched.kept()
        if before is not None and before.read_from(kept):
            return ReadFile(kept, before.rules)
        # Of `kept`, the octets would be inflated again.
        return ReadFile(kept, self._parsed(fetched))

    def _parsed(self, file: Found) -> RuleSet:
        rules = parse(file.body, dialect=self._policy.dialect).rules_for(self._agent)
        return rules.prepare() if file.length > PARSE_SIZE_FOR_THREAD else rules


def skew(clock: Clock) -> float:
    """Return the monotonic clock minus the wall clock."""
    return clock.monotonic() - clock.wall()
