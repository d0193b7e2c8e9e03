"""Answers about long URLs and hostile rules, without holding the event loop."""

import asyncio
from typing import Any
from weakref import ref

from polite.robots.decision import Decision
from polite.robots.rules import RuleSet

# In units of what a path of `RuleSet.quick_length` octets may take, 0.6 ms: one question, and all those of one pass of the loop.
_ONE = 16.0
_ALL = 48.0
# A question that costs less than one in so many of these, 3 us, costs less than to count it.
_FREE = 200
# Decisions that took long are kept until they are reported, without the rules: those may be large.
_KEPT = 8


class Verdicts:
    """Decides at once if that takes a few milliseconds at most, whatever the rules and the path hold; else in a thread.

    A budget bounds what all questions of one pass of the loop may take together. One thread computes at a time: threads take the
    interpreter from the loop for 5 ms each.
    """

    def __init__(self) -> None:
        self._computing = asyncio.Semaphore(1)
        self._spent = 0.0
        self._renewing = False
        self._decided: dict[str, tuple[ref[RuleSet], tuple[Any, ...]]] = {}

    def at_once(self, rules: RuleSet, path: str) -> bool | None:
        """Return whether the path is allowed; None if the answer may take too long now: then await `allows`."""
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
        allowed = self.at_once(rules, path)
        return (await self._decide_in_thread(rules, path)).allowed if allowed is None else allowed

    async def decide(self, rules: RuleSet, path: str) -> Decision:
        """Return what `rules.decide` returns."""
        if self.at_once(rules, path) is None:
            return await self._decide_in_thread(rules, path)
        return rules.decide(path)

    def decided(self, rules: RuleSet, path: str) -> Decision:
        """Return the decision for a path that was asked about a moment ago, which takes no time again."""
        decider, said = self._decided.get(path, (None, ()))
        if decider is None or decider() is not rules:
            return rules.decide(path)
        return tuple.__new__(Decision, (*said, rules))

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
        self._decided[path] = ref(rules), decision[:-1]
        return decision
