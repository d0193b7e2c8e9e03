"""Decisions about long URLs and hostile rules that do not block the event loop."""

import asyncio
from typing import Any
from weakref import ref

from polite.robots.decision import Decision
from polite.robots.lifetime import Lifetime
from polite.robots.rules import RuleSet

# The budget of one decision, and of one pass of the loop. A unit is what `RuleSet.quick_length` octets may take: 0.6 ms.
_ONE = 16.0
_ALL = 48.0
# A decision that costs less than one in so many of these, 3 us, costs less than counting it.
_FREE = 200
# Decisions that took long are kept until they are reported, without the rules, which may be large.
_KEPT = 8


class Decider:
    """Decides at once if that takes a few milliseconds at most, whatever the rules and the path; else in a thread.

    A budget bounds all decisions of one pass of the loop together. One thread computes at a time: each takes the interpreter from
    the loop for 5 ms at a time.
    """

    def __init__(self) -> None:
        self._computing = asyncio.Semaphore(1)
        self._spent = 0.0
        self._renewing = False
        self._decided: dict[str, tuple[ref[Lifetime], tuple[Any, ...]]] = {}

    def allows_now(self, rules: RuleSet, path: str) -> bool | None:
        """Return whether the path is allowed; None if that may take too long now: then await `allows`."""
        length, quick = len(path), rules.quick_length
        if length * _FREE <= quick:
            return rules.allows(path)
        cost = length / quick
        if cost <= _ONE and self._spent + cost <= _ALL:
            self._spent += cost
            if self._spent > 1.0 and not self._renewing:
                self._renewing = True
                asyncio.get_running_loop().call_soon(self._renew)
            return rules.allows(path)
        return None

    async def allows(self, rules: RuleSet, path: str) -> bool:
        """Return what `rules.allows` returns."""
        allowed = self.allows_now(rules, path)
        return (await self._decide_in_thread(rules, path)).allowed if allowed is None else allowed

    async def decide(self, rules: RuleSet, path: str) -> Decision:
        """Return what `rules.decide` returns."""
        if self.allows_now(rules, path) is None:
            return await self._decide_in_thread(rules, path)
        return rules.decide(path)

    def decide_again(self, rules: RuleSet, path: str) -> Decision:
        """Return the decision about a path that was decided a moment ago, at no cost."""
        lifetime, fields = self._decided.get(path, (None, ()))
        if lifetime is None or lifetime() is not rules.lifetime:
            return rules.decide(path)
        return tuple.__new__(Decision, (*fields, rules))

    @property
    def busy(self) -> bool:
        """Whether other tasks should run before more is decided at once."""
        return self._spent > _ALL / 2

    def _renew(self) -> None:
        self._spent = 0.0
        self._renewing = False

    async def _decide_in_thread(self, rules: RuleSet, path: str) -> Decision:
        loop = asyncio.get_running_loop()
        async with self._computing:
            decision = await loop.run_in_executor(None, lambda: rules.prepare().decide(path))
        while len(self._decided) >= _KEPT:
            del self._decided[next(iter(self._decided))]
        self._decided[path] = ref(rules.lifetime), decision[:-1]
        return decision
